package discover_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/belfry-go/belfry/discover"
)

// A list, and a file that other programs write. Package balance reads the source in a goroutine of its own.
func ExampleParse() {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("targets-%d", os.Getpid()))
	_ = os.WriteFile(path, []byte("10.0.0.1:8080 # new\n10.0.0.2:8080\n"), 0o600)
	defer os.Remove(path)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel() // it would wait for the file to change
	source, err := discover.Parse(ctx, []string{"file://" + path}, discover.Config{Scheme: "http"})
	if err != nil {
		fmt.Println(err)
		return
	}
	n := 0
	for change, err := range source {
		fmt.Println(change.Addr, err)
		if n++; n == 2 {
			break
		}
	}
	_, err = discover.Parse(ctx, []string{"dns:///backend"}, discover.Config{})
	fmt.Println(err)
	// Output:
	// http://10.0.0.1:8080 <nil>
	// http://10.0.0.2:8080 <nil>
	// discover: dns:///backend: must be host:port: missing port in address; accepted are http://host[:port], https://host[:port], host:port, dns:///host:port, srv:///name or file:///path
}

// What two sources name is one endpoint. It is gone when both have removed it.
func ExampleMerge() {
	moves := func(yield func(discover.Change, error) bool) {
		_ = yield(discover.Insert("http://a:8080"), nil) && yield(discover.Remove("http://a:8080"), nil)
	}
	known := map[string]bool{}
	for change, err := range discover.Merge(discover.List("http://a:8080"), moves) {
		if err == nil {
			known[change.ID()] = !change.Remove
		}
	}
	fmt.Println(known)
	// Output: map[http://a:8080:true]
}

// One in fifty calls goes to the new version, and the other region waits in case this one is lost.
func ExampleParse_attributes() {
	source, err := discover.Parse(context.Background(), []string{
		"http://a:8080 weight=49 zone=eu-1",
		"http://canary:8080 weight=1 zone=eu-1",
		"http://far:8080 zone=us-1 priority=1",
	}, discover.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for c, err := range source {
		fmt.Println(c.Addr, c.Weight, c.Zone, c.Priority, c.OnHost(), err)
	}
	// Output:
	// http://a:8080 49 eu-1 0 a <nil>
	// http://canary:8080 1 eu-1 0 canary <nil>
	// http://far:8080 0 us-1 1 far <nil>
}
