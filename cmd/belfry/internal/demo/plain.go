package demo

import (
	"fmt"
	"io"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/dustin/go-humanize"
)

// look is how often plain looks whether another policy has begun.
const look = 50 * time.Millisecond

// plain tells of b in lines, one for each whole second of a policy, until finished is closed. It is for logs, pipes and terminals
// that cannot be drawn on.
func plain(w io.Writer, b *board, finished <-chan struct{}) {
	timer := time.NewTimer(look)
	defer timer.Stop()
	var rate meter
	var started time.Time
	told, second := 0, time.Duration(0)
	for {
		select {
		case <-timer.C:
			now := time.Now()
			v := b.view(now)
			told = tellDone(w, v, told)
			if !v.started.Equal(started) {
				started, second = v.started, 0
			}
			if whole := v.elapsed.Truncate(time.Second); v.running && whole > second {
				second = whole
				fmt.Fprintln(w, progressLine(v, rate.observe(v.started, now, v.sent)))
			}
			// A ticker would tell of every policy but the first at some fraction of its seconds.
			timer.Reset(min(look, second+time.Second-v.elapsed))
		case <-finished:
			tellDone(w, b.view(time.Now()), told)
			return
		}
	}
}

func tellDone(w io.Writer, v view, told int) int {
	for _, p := range v.done[told:] {
		fmt.Fprintf(w, "%-*s  done: %s\n", nameWidth, p.Name, summary(p))
	}
	return len(v.done)
}

func progressLine(v view, rate float64) string {
	return fmt.Sprintf("%-*s %4ds  %s", nameWidth, v.policy, v.elapsed/time.Second, counts(v, rate))
}

// counts is what has happened under the policy so far.
func counts(v view, rate float64) string {
	line := fmt.Sprintf("%s requests, %s/s, p50 %s, p99 %s, %d in flight",
		humanize.Comma(v.sent), humanize.Comma(int64(rate)), orNone(v.p50), orNone(v.p99), v.inFlight)
	if v.failed > 0 {
		line += fmt.Sprintf(", %s failed", humanize.Comma(v.failed))
	}
	if v.errors > 0 {
		line += fmt.Sprintf(", %s errors", humanize.Comma(v.errors))
	}
	return line
}

// orNone is a latency, or a dash before there is one.
func orNone(d time.Duration) string {
	if d == 0 {
		return optional(nil)
	}
	return duration(d)
}

// intro says what is about to happen, in lines for any terminal.
func intro(b *board) string {
	text := fmt.Sprintf("%d HTTP servers on loopback: %s. The same %s requests/s go to them %d times, for %v each, through the same stack; "+
		"what differs is how it tells which of two servers is less busy.",
		len(b.servers), b.plan.About, humanize.Comma(int64(b.plan.Rate)), len(policies), b.plan.Run)
	return lipgloss.Wrap(text, textWidth, "") + "\n\n" + lipgloss.Wrap(b.stack, textWidth, "") + "\n\n"
}

// textWidth is where text is wrapped.
const textWidth = 80

// summary is a finished policy in one line.
func summary(p PolicyResult) string {
	line := fmt.Sprintf("%s requests, p50 %s, p99 %s", humanize.Comma(p.Requests), optional(p.P50), optional(p.P99))
	if p.Failed > 0 {
		line += fmt.Sprintf(", %s failed", humanize.Comma(int64(p.Failed)))
	}
	return line + fmt.Sprintf(", %s errors", humanize.Comma(p.Errors))
}
