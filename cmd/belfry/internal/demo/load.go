package demo

import (
	"context"
	"iter"
	"math/rand/v2"
	"sync"
	"time"
)

// arrivals yields when each request is due, counted from the start: a Poisson process, so that the load is open, as if from
// many users who do not know of one another. The same seed gives the same times.
func arrivals(p plan) iter.Seq2[uint64, time.Duration] {
	return func(yield func(uint64, time.Duration) bool) {
		random := rand.New(rand.NewPCG(p.seed, 0))
		gap := float64(time.Second) / float64(p.Rate)
		due := 0.0
		for n := uint64(0); ; n++ {
			due += random.ExpFloat64() * gap
			if due >= float64(p.Run) || !yield(n, time.Duration(due)) {
				return
			}
		}
	}
}

// send calls do for every arrival when it is due after start, in a goroutine of its own, until stop is done; then it calls sent
// and waits for those that were sent. A request that starts late, since the machine was busy, was due all the same: do is told when.
func send(stop context.Context, p plan, start time.Time, do func(n uint64, due time.Time), sent func()) {
	var inFlight sync.WaitGroup
	defer inFlight.Wait()
	defer sent()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n, offset := range arrivals(p) {
		due := start.Add(offset)
		if !sleepUntil(stop, timer, due) {
			return
		}
		inFlight.Go(func() { do(n, due) })
	}
	sleepUntil(stop, timer, start.Add(p.Run))
}

// sleepUntil waits for due, and reports false if stop was done first.
func sleepUntil(stop context.Context, timer *time.Timer, due time.Time) bool {
	wait := time.Until(due)
	if wait <= 0 {
		return stop.Err() == nil
	}
	timer.Reset(wait)
	select {
	case <-timer.C:
		return true
	case <-stop.Done():
		return false
	}
}
