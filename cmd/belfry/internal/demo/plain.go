package demo

import (
	"fmt"
	"io"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/dustin/go-humanize"
)

// plain tells of b in lines, one a second, until finished is closed. It is for logs, pipes and terminals that cannot be drawn on.
func plain(w io.Writer, b *board, finished <-chan struct{}) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var rate meter
	told := 0
	for {
		select {
		case now := <-ticker.C:
			v := b.view(now)
			told = tellDone(w, v, told)
			if v.running && v.elapsed >= time.Second/2 {
				fmt.Fprintln(w, progressLine(v, rate.observe(v.started, now, v.sent)))
			}
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
	return fmt.Sprintf("%-*s %4.0fs  %s", nameWidth, v.policy, v.elapsed.Seconds(), counts(v, rate))
}

// counts is what has happened under the policy so far.
func counts(v view, rate float64) string {
	line := fmt.Sprintf("%s requests, %s/s, p50 %s, p99 %s, %d in flight",
		humanize.Comma(v.sent), humanize.Comma(int64(rate)), duration(v.p50), duration(v.p99), v.inFlight)
	if v.errors > 0 {
		line += fmt.Sprintf(", %s errors", humanize.Comma(v.errors))
	}
	return line
}

// intro says what is about to happen, in lines for any terminal.
func intro(b *board) string {
	text := fmt.Sprintf("%d HTTP servers on loopback. Each answer takes a random time: up to 1 ms at the fastest server, up to 1 s at the "+
		"slowest. The same %s requests/s go to them three times, for %v each, through the same stack; what differs is how it "+
		"tells which of two servers is less busy.", len(b.servers), humanize.Comma(int64(b.cfg.Rate)), b.cfg.Duration)
	return lipgloss.Wrap(text, textWidth, "") + "\n\n" + lipgloss.Wrap(b.stack, textWidth, "") + "\n\n"
}

// textWidth is where text is wrapped.
const textWidth = 80

// summary is a finished policy in one line.
func summary(p PolicyResult) string {
	return fmt.Sprintf("%s requests, p50 %s, p99 %s, %s errors", humanize.Comma(p.Requests), optional(p.P50), optional(p.P99), humanize.Comma(p.Errors))
}
