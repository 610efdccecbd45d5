package outlier_test

import (
	"fmt"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/outlier"
)

// Four servers, of which one fails every fifth call. Time is an argument; behind a balancer, each endpoint's dialler makes a Service instead.
func ExampleDetector() {
	d := outlier.NewDetector(outlier.Config{})
	var servers []*outlier.Endpoint
	for range 4 {
		servers = append(servers, d.Join(nil))
	}
	now := time.Now()
	for call := range 110 {
		now = now.Add(100 * time.Millisecond)
		for i, s := range servers {
			kind := belfry.Success
			if i == 2 && call%5 == 0 {
				kind = belfry.Failure
			}
			s.End(now, 20*time.Millisecond, kind)
		}
	}
	for i, s := range servers {
		fmt.Println(i, s.Ejected(now) > 0)
	}
	// Output:
	// 0 false
	// 1 false
	// 2 true
	// 3 false
}
