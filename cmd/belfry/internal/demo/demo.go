// Package demo shows what a load metric is worth: real servers of which some are slower, or have trouble, the same open load for
// each of four metrics, and a table that compares them, also with what the lab says of the same servers.
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
	p, err := cfg.plan()
	var res Result
	if err == nil {
		res, err = measure(p, out, pressed)
	}
	if err == nil {
		err = tell(p, out, res, pressed.stopped.Err() != nil)
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
func tell(of plan, out Output, res Result, interrupted bool) error {
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
	_, err := lipgloss.Fprint(out.Stdout, conclusion(of, res.Policies, interrupted, st))
	return err
}

// measure runs the policies one after the other, with a display that watches, and asks the lab.
func measure(of plan, out Output, pressed *interrupt) (Result, error) {
	servers, err := startServers(of)
	if err != nil {
		return Result{}, err
	}
	defer stopServers(servers)
	b := &board{plan: of, servers: servers, stack: describe(of)}
	defer out.display(b, pressed.press)()

	res := Result{Scenario: of.Name}
	for _, p := range policies {
		if pressed.stopped.Err() != nil {
			break
		}
		one, err := runPolicy(of, p, b, pressed)
		if err != nil {
			return Result{}, fmt.Errorf("%s: %w", p.name, err)
		}
		if one.Requests > 0 {
			one.Lab = p.simulate(of)
			res.Policies = append(res.Policies, one)
		}
	}
	return res, nil
}

// The lab takes the means over labSeeds runs, of no more requests in all than take it a second or two.
const (
	labSeeds    = 5
	labRequests = 1_000_000
)

// simulate runs p in virtual time.
func (p policy) simulate(of plan) *LabResult {
	if float64(of.Rate)*of.Run.Seconds()*labSeeds > labRequests {
		return nil
	}
	f := of.Simulate(p.load, labSeeds)
	ms := func(v float64) Milliseconds { return milliseconds(time.Duration(v * float64(time.Millisecond))) }
	return &LabResult{ms(f.P50), ms(f.P99), Figures{OddShare: f.OddShare, Stuck: f.Stuck, Failed: f.Failed}}
}

// runPolicy sends the load through p, with connections of its own.
func runPolicy(of plan, p policy, b *board, pressed *interrupt) (PolicyResult, error) {
	t := newTrial()
	client, shut, err := p.client(b.servers, of, t)
	if err != nil {
		return PolicyResult{}, err
	}
	defer shut()
	runtime.GC() // Each policy begins with the same heap, so that none pays for another's garbage.
	start := t.begin(b.servers)
	m := newMeasurement(p.name, of.Demo, start)
	b.begin(m)
	send(pressed.stopped, of, start, func(n uint64, due time.Time) {
		m.began(due)
		server, err := ask(pressed.aborted, client, n, len(b.servers))
		m.ended(due, server, err, pressed.aborted.Err() != nil)
	}, func() { close(t.sent) })
	res := m.result()
	b.end(res)
	return res, nil
}

// ask sends request n to one of so many servers, and returns the number of the one that answered, also if that is a *meantError.
func ask(ctx context.Context, client http.RoundTripper, n uint64, servers int) (int, error) {
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
	server, err := strconv.Atoi(res.Header.Get(serverHeader))
	switch {
	case (err != nil || server < 0 || server >= servers) && res.StatusCode == http.StatusOK:
		return 0, errors.New("answered by a server that is not the demo's")
	case err == nil && res.StatusCode == http.StatusInternalServerError:
		return server, &meantError{res.Status}
	case res.StatusCode != http.StatusOK:
		return 0, errors.New("answered " + res.Status)
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
