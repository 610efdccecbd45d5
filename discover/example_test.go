package discover_test

import (
	"fmt"
	"iter"

	"github.com/belfry-go/belfry/discover"
)

func ExampleList() {
	for change, err := range discover.List("http://a:8080", "http://b:8080") {
		fmt.Println(change.Addr, err)
	}
	// Output:
	// http://a:8080 <nil>
	// http://b:8080 <nil>
}

// A source turns whole sets, as DNS or a file gives them, into changes. The inserts come first.
func ExampleChange() {
	update := func(before, after []string) iter.Seq2[discover.Change, error] {
		return func(yield func(discover.Change, error) bool) {
			known, wanted := map[string]bool{}, map[string]bool{}
			for _, addr := range before {
				known[addr] = true
			}
			for _, addr := range after {
				wanted[addr] = true
				if !known[addr] && !yield(discover.Insert(addr), nil) {
					return
				}
			}
			for _, addr := range before {
				if !wanted[addr] && !yield(discover.Remove(addr), nil) {
					return
				}
			}
		}
	}
	for change, err := range update([]string{"10.0.0.1", "10.0.0.2"}, []string{"10.0.0.2", "10.0.0.3"}) {
		if err == nil {
			fmt.Println(change.ID(), "is gone:", change.Remove)
		}
	}
	// Output:
	// 10.0.0.3 is gone: false
	// 10.0.0.1 is gone: true
}
