package load

// An evidence is the calls of an endpoint that have not come back, by when they were started. Those of the present generation and
// the one before say how long an answer takes at least. A success of the present generation begins a new one, and so
// overtakes those of the one before: an endpoint that answers what came later is not slow, it has lost a call.
type evidence struct {
	sum              int64 // of the start times of those two generations,
	n                int32 // and how many calls they are
	unusual          bool  // is its owner's, and here to be on the same cache line
	generation       uint64
	older, overtaken bucket
}

// A bucket is a number of calls and the sum of their start times. In microseconds a sum has room for thousands of years
// of requests; in nanoseconds since 1970 it would overflow at the sixth.
type bucket struct {
	sum int64
	n   int32
}

func (b *bucket) remove(start int64) { b.n--; b.sum -= start }

// age is how old the calls are in the mean.
func (b bucket) age(now int64) float64 {
	if b.n == 0 {
		return 0
	}
	return float64(now) - float64(b.sum)/float64(b.n)
}

// start adds a call.
func (e *evidence) start(now int64) Mark {
	e.n++
	e.sum += now
	return Mark{Start: now, Generation: e.generation}
}

// settle takes out a call that came back.
func (e *evidence) settle(mark Mark, class Class) {
	switch e.generation - mark.Generation {
	case 0:
		e.remove(mark.Start)
		if class == Success {
			e.overtake()
		}
	case 1:
		e.remove(mark.Start)
		e.older.remove(mark.Start)
	default:
		e.overtaken.remove(mark.Start)
	}
}

func (e *evidence) remove(start int64) { e.n--; e.sum -= start }

// overtake begins a generation.
func (e *evidence) overtake() {
	e.generation++
	if e.n == 0 {
		return // nothing is out, so nothing is older
	}
	e.overtaken.n += e.older.n
	e.overtaken.sum += e.older.sum
	e.n -= e.older.n
	e.sum -= e.older.sum
	e.older = bucket{sum: e.sum, n: e.n}
}

// all is how many calls have not come back, overtaken ones too.
func (e *evidence) all() int64 { return int64(e.n + e.overtaken.n) }

// twiceAge is what they say an answer takes: twice their mean age, because a call seen at a random moment is on average
// halfway through.
func (e *evidence) twiceAge(now int64) float64 {
	return 2 * bucket{sum: e.sum, n: e.n}.age(now)
}
