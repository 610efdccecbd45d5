package load

import "math"

// The odds of an endpoint are the successes and failures it has had, at a time; older ones count for less.
type odds struct {
	good, bad float64
	at        int64
	turn      turn
	since     int64 // the start of the call that showed the latest turn
}

// priorSuccess is the part of a success that an endpoint has without having answered. It is small, so that
// one failure weighs a lot.
const priorSuccess = 0.1

// judge adds how a call ended that was started at start. The weight of what was there is fade. A success from before a turn says nothing of
// what came after it.
func (o *odds) judge(start, now int64, fade float64, success bool) {
	o.good *= fade
	o.bad *= fade
	o.at = max(o.at, now)
	switch {
	case success && start < o.since:
	case success:
		if o.turn.score > 0 {
			o.turn.succeed(o.failing())
		}
		o.good++
	case o.turn.fail(o.failing()):
		o.good, o.bad, o.since = 0, o.turn.n, start
		o.turn = turn{}
	default:
		o.bad++
	}
}

// failing is the part of the calls that fails. Nothing is sure: it is no less than one in a thousand, and no more than 0.9.
func (o *odds) failing() float64 {
	return min(max(o.bad/(o.good+o.bad+1), 0.001), mostFail)
}

// attempts is how many calls a success is expected to take, when the weight of the odds is fade.
func (o *odds) attempts(fade float64) float64 {
	return 1 + o.bad*fade/(o.good*fade+priorSuccess)
}

// A turn is the failures since it began to look as if an endpoint had turned from one that fails sometimes into one that fails nine times in
// ten, for Page's cumulative sum test. Without it, thousands of good answers would have to be outweighed first.
type turn struct {
	score, n float64
}

const (
	mostFail = 0.9
	turned   = 10 // the score, a logarithm of a likelihood ratio, from which on it has
)

func (t *turn) fail(usual float64) bool {
	t.score += math.Log(mostFail / usual)
	t.n++
	return t.score > turned
}

func (t *turn) succeed(usual float64) {
	if t.score += math.Log((1 - mostFail) / (1 - usual)); t.score <= 0 {
		*t = turn{}
	}
}
