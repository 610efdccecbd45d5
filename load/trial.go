package load

// An endpoint that was slow, or failed, costs so much that it gets nothing, and so cannot show that it is well again: a peak of a
// hundred times the usual latency takes 46 s to fade, whatever the endpoint has become meanwhile. Therefore one that has been
// passed over for long is due: its next request is a trial, for which it costs no more than its peers. A success there is
// all that is known of it from then on. Any other end of a trial counts as always.
//
// A trial may be slow. So the pauses between trials are ten times what a request is expected to take, from 1 s to 5 s, and 20 times the
// requests that make one for each endpoint: less than a twentieth of its share.
const (
	trialPeaks = 10
	trialAfter = second
	trialMost  = 5 * second
	trialTurns = 20
)

// due reports whether the next request is to be a trial. It is apart from overdue because it costs nothing for endpoints in use.
func (p *peak) due(now int64) bool { return now-p.last >= trialAfter && p.overdue(now) }

// overdue is due for an endpoint that had nothing for a second. What has not come back is evidence, for which there are other rules.
func (p *peak) overdue(now int64) bool {
	return p.answered && p.current.n+p.older.n == 0 &&
		float64(now-p.last) >= min(trialPeaks*p.level(now), trialMost) &&
		p.fleet.starts.Load()-p.turn >= trialTurns*p.fleet.averages.count()
}

// begin notes a start, and whether it is that of a trial.
func (p *peak) begin(now int64) {
	if now-p.last >= trialAfter && p.answered && (p.overdue(now) || p.forgotten(now)) {
		p.trying, p.trial = true, now
	}
	p.last, p.turn = max(p.last, now), p.fleet.starts.Add(1)
}

// tried reports whether mark is that of a trial, which is then over.
func (p *peak) tried(mark Mark) bool {
	if !p.trying || p.trial != mark.Start {
		return false
	}
	p.trying = false
	return true
}

// forget leaves of what is known that a request took so long. What was started before that one is old news too, however it ends.
func (p *peak) forget(now int64, took float64) {
	p.average, p.stamp = took, max(p.stamp, now)
	p.doubt.confirm(now)
	p.good, p.bad, p.judged = 1, 0, max(p.judged, now)
	p.older, p.current = bucket{}, bucket{}
	p.generation += 2
	p.proven = p.trial
}

// outdated reports whether a call was started before a trial that has succeeded.
func (p *peak) outdated(mark Mark) bool { return mark.Start < p.proven }
