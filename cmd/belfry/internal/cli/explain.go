package cli

import (
	"context"

	"github.com/belfry-go/belfry/cmd/belfry/internal/explain"
)

type explainCommand struct {
	Endpoint string `arg:"" help:"Which: its URL as the page shows it, or its host:port."`
	Admin    string `default:"${admin}" placeholder:"ADDR" help:"The admin address of the proxy (default ${admin})."`
}

// Help is the long help.
func (explainCommand) Help() string {
	return `Asks a running proxy, and says in words why an endpoint gets little: that it is slow, fails, is left alone, has no room, stands
behind others, or has just begun; or that nothing keeps it from its share. With decisions in the proxy's file it also says how
often the endpoint was compared with others lately, and what came first.

To see how other policies would have shared the same requests, save the decisions and replay them.

Examples:

  belfry explain http://10.0.0.3:8080
  belfry explain 10.0.0.3:8080 --admin 10.0.0.1:9900
  curl -s http://127.0.0.1:9900/api/decisions > saved.json
  belfry lab replay saved.json`
}

// Run asks, and prints the answer.
func (c explainCommand) Run(p Process) error {
	state, decisions, err := explain.Ask(context.Background(), c.Admin)
	if err != nil {
		return err
	}
	e, err := explain.Find(state, c.Endpoint)
	if err != nil {
		return err
	}
	return explain.Endpoint(state, decisions, e).Write(p.Stdout)
}
