package demo_test

import (
	"os"

	"github.com/belfry-go/belfry/cmd/belfry/internal/demo"
)

func ExampleResult_WriteJSON() {
	p50 := demo.Milliseconds(5.6)
	_ = demo.Result{Scenario: "hang", Policies: []demo.PolicyResult{{
		Name: "expected", Requests: 5000, P50: &p50,
		Figures:   demo.Figures{OddShare: 0.001, Stuck: 17},
		Lab:       &demo.LabResult{P50: 5.5, P99: 9.5, Figures: demo.Figures{OddShare: 0.0008, Stuck: 16.9}},
		Endpoints: []demo.EndpointResult{{Label: "steady", MaxLatency: 10, Share: 1}},
	}}}.WriteJSON(os.Stdout)
	// Output:
	// {
	//   "scenario": "hang",
	//   "policies": [
	//     {
	//       "name": "expected",
	//       "requests": 5000,
	//       "errors": 0,
	//       "p50_ms": 5.6,
	//       "p90_ms": null,
	//       "p99_ms": null,
	//       "p999_ms": null,
	//       "odd_share": 0.001,
	//       "stuck": 17,
	//       "failed": 0,
	//       "lab": {
	//         "p50_ms": 5.5,
	//         "p99_ms": 9.5,
	//         "odd_share": 0.0008,
	//         "stuck": 16.9,
	//         "failed": 0
	//       },
	//       "endpoints": [
	//         {
	//           "label": "steady",
	//           "max_latency_ms": 10,
	//           "share": 1
	//         }
	//       ]
	//     }
	//   ]
	// }
}
