package proxy_test

import (
	"fmt"

	"github.com/belfry-go/belfry/cmd/belfry/internal/proxy"
)

func ExampleParseTargets() {
	fmt.Println(proxy.ParseTargets([]string{"http://A.example/", "https://b.example"}))
	_, err := proxy.ParseTargets([]string{"http://a.example", "http://a.example:80"})
	fmt.Println(err)
	// Output:
	// [http://a.example:80 https://b.example:443] <nil>
	// --to must be http://host[:port], https://host[:port], h2c://host[:port], dns:///host:port, srv:///name or file:///path, each once; "http://a.example" and "http://a.example:80" are the same
}
