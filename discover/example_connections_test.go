package discover_test

import (
	"fmt"
	"time"

	"github.com/belfry-go/belfry/discover"
)

// Behind a virtual IP are more servers than one connection sees. The client has two, and each is made anew now and then.
func ExampleConnections() {
	source := discover.Connections{PerAddress: 2, RotateEvery: 20 * time.Millisecond}.Of(discover.List("10.0.0.1:8080"))
	seen := 0
	for change, err := range source {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(change.Key, "at", change.Addr, "generation", change.Generation)
		if seen++; seen == 4 {
			break
		}
	}
	// Output:
	// 10.0.0.1:8080 at 10.0.0.1:8080 generation 0
	// 10.0.0.1:8080#2 at 10.0.0.1:8080 generation 0
	// 10.0.0.1:8080 at 10.0.0.1:8080 generation 1
	// 10.0.0.1:8080#2 at 10.0.0.1:8080 generation 1
}
