package sim

import (
	"math/rand/v2"
	"time"

	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/internal/backoff"
	"github.com/belfry-go/belfry/retry"
)

// Outage is callers that stand in a row, each of which retries what the next one answers, before a server that
// fails everything from a time on.
type Outage struct {
	Callers int
	Rate    float64 // requests per second to the first caller
	Until   int64
	Fails   int64 // when the server begins to
	Took    int64 // what an attempt at the server takes

	// Unlimited callers have no budget; Unmarked ones do not say that an answer should not be tried again.
	Unlimited, Unmarked bool
	Seed                uint64
}

// A Tally counts what one caller was asked, and what it sent, from when on it is asked to count.
type Tally struct{ Requests, Attempts int }

// outage is a run. Its pauses are the retry layer's defaults.
type outage struct {
	Outage
	from    int64
	random  *rand.Rand
	pause   backoff.Exponential
	budgets []*budget.Budget
	tallies []Tally
	events  events
	tries   []try
	unused  []int32
}

// A try is a request at one caller.
type try struct {
	parent   int32 // at the caller before, nobody's if it is the first
	caller   int32
	attempts int
	pausing  bool
}

const nobody = -1

// answer is what an attempt came to.
type answer struct{ good, final bool }

// Run returns what each caller did from then on, in order.
func (o Outage) Run(from int64) []Tally {
	run := &outage{
		Outage: o, from: from, random: rand.New(rand.NewPCG(o.Seed, seedArrivals)),
		pause:   backoff.Exponential{Min: 50 * time.Millisecond, Max: 10 * time.Second},
		tallies: make([]Tally, o.Callers),
	}
	for range o.Callers {
		b := budget.New(budget.Config{})
		if o.Unlimited {
			b = budget.Unlimited()
		}
		run.budgets = append(run.budgets, b)
	}
	for at := 0.0; ; {
		at += run.random.ExpFloat64() / o.Rate * 1e6
		now := int64(at)
		if now >= o.Until {
			return run.tallies
		}
		for run.events.len() > 0 && run.events.first().at <= now {
			run.next()
		}
		run.ask(now, 0, nobody)
	}
}

// next lets an attempt at the server end, or a pause.
func (o *outage) next() {
	e := o.events.pop()
	if t := &o.tries[e.call]; t.pausing {
		t.pausing = false
		o.attempt(e.at, e.call)
		return
	}
	o.answered(e.at, e.call, answer{good: e.at < o.Fails})
}

// ask gives a request to caller.
func (o *outage) ask(now int64, caller, parent int32) {
	if now >= o.from {
		o.tallies[caller].Requests++
	}
	o.attempt(now, o.keep(try{parent: parent, caller: caller}))
}

func (o *outage) attempt(now int64, at int32) {
	t := &o.tries[at]
	t.attempts++
	if now >= o.from {
		o.tallies[t.caller].Attempts++
	}
	if int(t.caller) == o.Callers-1 {
		o.events.push(now+o.Took, at)
		return
	}
	o.ask(now, t.caller+1, at)
}

// answered gives a caller the answer to its attempt.
func (o *outage) answered(now int64, at int32, a answer) {
	t := &o.tries[at]
	if a.good {
		o.budgets[t.caller].DepositAt(clock(now))
	} else if !a.final && t.attempts < retry.DefaultMaxAttempts {
		if o.budgets[t.caller].WithdrawAt(clock(now)) {
			t.pausing = true
			o.events.push(now+o.pause.Delay(t.attempts-1, o.random.Float64()).Microseconds(), at)
			return
		}
		a.final = !o.Unmarked
	}
	parent := t.parent
	o.unused = append(o.unused, at)
	if parent != nobody {
		o.answered(now, parent, a)
	}
}

func (o *outage) keep(t try) int32 {
	if last := len(o.unused) - 1; last >= 0 {
		place := o.unused[last]
		o.unused = o.unused[:last]
		o.tries[place] = t
		return place
	}
	o.tries = append(o.tries, t)
	return int32(len(o.tries) - 1)
}

// clock is a virtual time as the budget takes it.
func clock(now int64) time.Time { return time.UnixMicro(now) }
