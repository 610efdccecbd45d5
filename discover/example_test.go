package discover_test

import (
	"fmt"
	"iter"
	"strings"

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

// Of many servers this client uses three, and other clients others.
func ExampleSubset() {
	servers := discover.List("http://a", "http://b", "http://c", "http://d", "http://e", "http://f")
	for i := range 2 {
		client := discover.Subset{Size: 3, Index: i, Count: 2} // or Identity: the name of the host
		for change, err := range client.Of(servers) {
			fmt.Println("client", i, "uses", change.Addr, err)
		}
	}
	// Output:
	// client 0 uses http://b <nil>
	// client 0 uses http://c <nil>
	// client 0 uses http://d <nil>
	// client 1 uses http://a <nil>
	// client 1 uses http://f <nil>
	// client 1 uses http://e <nil>
}

// The servers of one rack, on another port.
func ExampleMap() {
	servers := discover.List("10.1.0.1:80", "10.2.0.1:80", "10.1.0.2:80")
	for change, err := range discover.Map(servers, func(c discover.Change) (discover.Change, bool) {
		host, _, _ := strings.Cut(c.Addr, ":")
		return discover.Insert("http://" + host + ":8080"), strings.HasPrefix(host, "10.1.")
	}) {
		fmt.Println(change.Addr, err)
	}
	// Output:
	// http://10.1.0.1:8080 <nil>
	// http://10.1.0.2:8080 <nil>
}
