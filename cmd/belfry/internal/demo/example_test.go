package demo_test

import (
	"os"

	"github.com/belfry-go/belfry/cmd/belfry/internal/demo"
)

func ExampleResult_WriteJSON() {
	p50 := demo.Milliseconds(5.6)
	_ = demo.Result{Policies: []demo.PolicyResult{{
		Name: "peakewma", Requests: 1, P50: &p50,
		Endpoints: []demo.EndpointResult{{MaxLatency: 10, Share: 1}},
	}}}.WriteJSON(os.Stdout)
	// Output:
	// {
	//   "policies": [
	//     {
	//       "name": "peakewma",
	//       "requests": 1,
	//       "errors": 0,
	//       "p50_ms": 5.6,
	//       "p90_ms": null,
	//       "p99_ms": null,
	//       "p999_ms": null,
	//       "endpoints": [
	//         {
	//           "max_latency_ms": 10,
	//           "share": 1
	//         }
	//       ]
	//     }
	//   ]
	// }
}
