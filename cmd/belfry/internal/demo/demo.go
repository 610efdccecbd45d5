// Package demo shows what a load metric is worth: ten servers of very different speed, the same open load for each of three
// metrics, and a table that compares them.
//
// The load is open: when a request is due does not depend on how fast earlier ones were answered, and its latency counts from
// when it was due. A closed loop would send less to whoever is slow, and so hide the slowness it is to measure
// (coordinated omission).
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/term"
)

// Exit codes of Run.
const (
	ExitOK          = 0
	ExitFailed      = 1 // a request got no good answer, or the demo could not run
	ExitInterrupted = 130
)

// Output is where the demo tells what it does and what it found.
type Output struct {
	Stdout, Stderr io.Writer
	// JSON puts the result on Stdout as one object and everything else on Stderr.
	JSON bool
	// Getenv looks up the environment: NO_COLOR, CI and TERM decide whether to draw.
	Getenv func(string) string
}

// Run measures all policies, tells what it finds, and returns the exit code. The first SIGINT or SIGTERM ends the sending and leaves
// what was measured so far, the second also ends the requests in flight.
func Run(cfg Config, out Output) int {
	pressed := newInterrupt(context.Background())
	defer pressed.abort()
	defer pressed.onSignals()()
	res, err := measure(cfg, out, pressed)
	if err == nil {
		err = tell(cfg, out, res, pressed.stopped.Err() != nil)
	}
	switch {
	case err != nil:
		fmt.Fprintf(out.Stderr, "belfry demo: %v\n", err)
		return ExitFailed
	case pressed.stopped.Err() != nil:
		return ExitInterrupted
	case res.Failed():
		return ExitFailed
	}
	return ExitOK
}

// tell writes the result to Stdout and the first error of each policy to Stderr.
func tell(cfg Config, out Output, res Result, interrupted bool) error {
	for _, p := range res.Policies {
		if p.Errors > 0 {
			fmt.Fprintf(out.Stderr, "belfry demo: %s: %d of %d requests failed; the first: %v\n", p.Name, p.Errors, p.Requests, p.firstError)
		}
	}
	if out.JSON {
		return res.WriteJSON(out.Stdout)
	}
	st := styles{}
	if out.drawable(out.Stdout) {
		st = colourful()
	}
	_, err := lipgloss.Fprint(out.Stdout, comparison(cfg, res.Policies, interrupted, st))
	return err
}

// measure runs the policies one after the other, with a display that watches.
func measure(cfg Config, out Output, pressed *interrupt) (Result, error) {
	servers, err := startServers(cfg.Seed)
	if err != nil {
		return Result{}, err
	}
	defer stopServers(servers)
	b := &board{cfg: cfg, servers: servers, stack: describe(cfg)}
	defer out.display(b, pressed.press)()

	var res Result
	for _, p := range policies {
		if pressed.stopped.Err() != nil {
			break
		}
		one, err := runPolicy(cfg, p, b, pressed)
		if err != nil {
			return Result{}, fmt.Errorf("%s: %w", p.name, err)
		}
		if one.Requests > 0 {
			res.Policies = append(res.Policies, one)
		}
	}
	return res, nil
}

// runPolicy sends the load through p, with connections of its own.
func runPolicy(cfg Config, p policy, b *board, pressed *interrupt) (PolicyResult, error) {
	client, shut, err := p.client(b.servers, cfg)
	if err != nil {
		return PolicyResult{}, err
	}
	defer shut()
	runtime.GC() // Each policy begins with the same heap, so that none pays for another's garbage.
	m := newMeasurement(p.name)
	b.begin(m)
	send(pressed.stopped, cfg, func(n uint64, due time.Time) {
		m.began(due)
		server, err := ask(pressed.aborted, client, n)
		m.ended(due, server, err, pressed.aborted.Err() != nil)
	})
	res := m.result()
	b.end(res)
	return res, nil
}

// ask sends request n, and returns the number of the server that answered.
func ask(ctx context.Context, client http.RoundTripper, n uint64) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://demo/"+strconv.FormatUint(n, 10), http.NoBody)
	if err != nil {
		return 0, err
	}
	res, err := client.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return 0, err
	}
	if res.StatusCode != http.StatusOK {
		return 0, errors.New("answered " + res.Status)
	}
	server, err := strconv.Atoi(res.Header.Get(serverHeader))
	if err != nil || server < 0 || server >= len(spread) {
		return 0, errors.New("answered by a server that is not the demo's")
	}
	return server, nil
}

// display shows b until the function that it returns is called: drawn on a terminal, else in lines.
func (o Output) display(b *board, press func()) (end func()) {
	w := o.Stdout
	if o.JSON {
		w = o.Stderr
	}
	fmt.Fprint(w, intro(b))
	finished := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		if o.drawable(w) {
			if err := live(w, b, colourful(), press, finished); err == nil {
				return
			}
		}
		plain(w, b, finished)
	})
	return func() {
		close(finished)
		shown.Wait()
	}
}

// drawable reports whether w is a terminal that may be drawn on.
func (o Output) drawable(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(f.Fd()) {
		return false
	}
	kind := o.Getenv("TERM")
	return o.Getenv("NO_COLOR") == "" && o.Getenv("CI") == "" && kind != "" && kind != "dumb"
}
