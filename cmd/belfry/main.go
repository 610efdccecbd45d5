// Belfry puts the stack in front of real servers, and shows what it is worth:
//
//	belfry demo                             three load metrics compared on ten servers, in 20 s
//	belfry proxy --to http://a,http://b     a reverse proxy that balances, tries again, queues and sheds
//	belfry check belfry.yaml                what is wrong with its configuration file
//	belfry version
//
// Each has a --help.
package main

import (
	"os"

	"github.com/belfry-go/belfry/cmd/belfry/internal/cli"
)

func main() {
	os.Exit(cli.Run(os.Args[1:], cli.Process{Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}))
}
