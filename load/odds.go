package load

// The odds of an endpoint are the successes and failures it has had, at a time; older ones count for less.
type odds struct {
	good, bad float64
	at        int64
}

// priorSuccess is the part of a success that an endpoint has without having answered. It is small, so that
// one failure weighs a lot.
const priorSuccess = 0.1

// judge adds to the odds. The weight of what was there is fade.
func (o *odds) judge(now int64, fade, good, bad float64) {
	o.good = o.good*fade + good
	o.bad = o.bad*fade + bad
	o.at = max(o.at, now)
}

// attempts is how many calls a success is expected to take, when the weight of the odds is fade.
func (o *odds) attempts(fade float64) float64 {
	return 1 + o.bad*fade/(o.good*fade+priorSuccess)
}
