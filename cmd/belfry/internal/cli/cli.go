// Package cli is belfry's command line: the grammar, what is refused, and which exit code means what.
package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/belfry-go/belfry/cmd/belfry/internal/version"
)

// ExitUsage is the exit code for a command line that is refused.
const ExitUsage = 2

// Process is what belfry has from the process that it is.
type Process struct {
	Stdout, Stderr io.Writer
	Getenv         func(string) string
}

type grammar struct {
	Demo    demoCommand    `cmd:"" help:"Compare four load metrics on real servers that differ or have trouble, in about 20 s."`
	Proxy   proxyCommand   `cmd:"" help:"Put the stack in front of servers: balance, retry, queue, and shed what is too much."`
	Check   checkCommand   `cmd:"" help:"Say what is wrong with a configuration file."`
	Explain explainCommand `cmd:"" help:"Say why an endpoint of a running proxy gets little."`
	Lab     labCommand     `cmd:"" help:"Compare ways to choose a server in virtual time, on scenarios with known figures."`
	Version versionCommand `cmd:"" help:"Print version, commit and platform."`
}

// Run does what args say and returns the exit code.
func Run(args []string, p Process) (code int) {
	// Kong ends the process after --help; here only Run ends.
	type exit int
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(exit)
			if !ok {
				panic(r)
			}
			code = int(e)
		}
	}()
	var g grammar
	parser, err := kong.New(&g,
		kong.Name("belfry"),
		kong.Description("Readiness, load balancing and overload protection in front of real servers."),
		kong.Writers(p.Stdout, p.Stderr),
		kong.Exit(func(code int) { panic(exit(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.WithHyphenPrefixedParameters(true), // A negative number is refused by its flag, not as a flag.
		kong.ExplicitGroups([]kong.Group{
			{Key: "bounds", Title: "How much, and how long:"},
			{Key: "retries", Title: "Trying again:"},
		}),
		vars(),
	)
	if err != nil {
		panic(err) // The grammar above is wrong.
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	ctx, err := parser.Parse(args)
	if err != nil {
		return refuse(p.Stderr, err)
	}
	if err := ctx.Run(p, &code); err != nil {
		fmt.Fprintf(p.Stderr, "belfry: %v\n", err)
		return 1
	}
	return code
}

// refuse says what is wrong with the command line, what would be right, and where to read more.
func refuse(w io.Writer, err error) int {
	command, message := "belfry", err.Error()
	if parse, ok := errors.AsType[*kong.ParseError](err); ok {
		if node := parse.Context.Selected(); node != nil {
			command = node.FullPath()
			message = strings.TrimPrefix(message, node.Name+": ") // Validate's; the last line says it.
		}
		message += acceptedBy(parse.Context, message)
	}
	fmt.Fprintf(w, "belfry: %s\nTry: %s --help\n", message, command)
	return ExitUsage
}

// acceptedBy returns what is accepted by the flag that message, the parser's, begins with. The flag's tag names the variable
// that says it.
func acceptedBy(ctx *kong.Context, message string) string {
	for _, flag := range ctx.Flags() {
		if strings.HasPrefix(message, "--"+flag.Name+":") && flag.Tag.Has("accept") {
			return "; accepted: " + vars()[flag.Tag.Get("accept")]
		}
	}
	return ""
}

// vars are what help texts and messages interpolate.
func vars() kong.Vars {
	all := demoVars()
	maps.Copy(all, proxyVars())
	maps.Copy(all, labVars())
	return all
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(p Process) error {
	_, err := fmt.Fprintln(p.Stdout, version.String())
	return err
}
