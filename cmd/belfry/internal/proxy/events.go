package proxy

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/health"
	"github.com/belfry-go/belfry/hedge"
	"github.com/belfry-go/belfry/retry"
)

// A refuser is a layer that turns requests away.
type refuser uint8

const (
	byShed refuser = iota
	byBuffer
	byLimit
	byTimeout
	byEndpoint
	byRate
	byAttempt
	refusers // their number
)

// String returns the layer as State.Stack calls it; the limit of one endpoint has the same name there as that of all.
func (r refuser) String() string {
	return [...]string{"load shed", "buffer", "concurrency limit", "timeout", "endpoint limit", "rate limit", "attempt timeout"}[r]
}

// events counts what layers tell of, and tells the log: of each change of a state once, of what may happen with each request
// once in a while. It is called from within requests, so it waits for nothing but the log.
type events struct {
	log     *slog.Logger
	began   time.Time
	refused [refusers]struct {
		count atomic.Uint64
		line  seldom
	}
	retries seldom
	hedges  seldom

	mu      sync.Mutex      // guards what follows; the log is not called under it
	failing map[string]bool // endpoints that were told of
	lookups string          // the error of discovery that was told of last
	looked  time.Time       // when
}

func newEvents(log *slog.Logger) *events {
	return &events{log: log, began: time.Now(), failing: map[string]bool{}}
}

// refusal returns what a layer tells of those it turns away. Each of them is told of as a request that failed, at a higher level,
// when it has no answer in the end.
func (e *events) refusal(by refuser) func(error) {
	return func(err error) {
		r := &e.refused[by]
		r.count.Add(1)
		if !e.log.Enabled(context.Background(), slog.LevelDebug) {
			return
		}
		if skipped, ok := r.line.may(time.Since(e.began)); ok {
			e.log.Debug("layer refused", "layer", by.String(), "error", err, "suppressed", skipped)
		}
	}
}

// refusals returns how many each layer has turned away.
func (e *events) refusals() map[string]uint64 {
	all := make(map[string]uint64, refusers)
	for by := range refusers {
		all[by.String()] = e.refused[by].count.Load()
	}
	return all
}

// retried tells of a request that is going to be sent again.
func (e *events) retried(ev retry.Event) {
	skipped, ok := e.retries.may(time.Since(e.began))
	if !ok {
		return
	}
	attrs := []any{"attempt", ev.Attempt, "wait", ev.Wait, "suppressed", skipped}
	if ev.Err != nil {
		attrs = append(attrs, "error", ev.Err)
	}
	e.log.Info("request tried again", attrs...)
}

// hedged tells of a request that takes long, and is going to be sent to another endpoint too. The layer counts them.
func (e *events) hedged(ev hedge.Event) {
	if skipped, ok := e.hedges.may(time.Since(e.began)); ok {
		e.log.Info("request hedged", "hedge", ev.Hedge, "after", ev.Delay, "suppressed", skipped)
	}
}

// health tells of an endpoint whose probes say something else than before.
func (e *events) health(key string, s health.Stats) {
	if s.Healthy {
		e.log.Info("endpoint healthy", "endpoint", key)
		return
	}
	e.log.Warn("endpoint unhealthy", "endpoint", key, "error", s.LastError)
}

// breaker tells of an endpoint whose breaker opens or closes. That it lets one request through in between is neither.
func (e *events) breaker(key string, c breaker.Change) {
	switch c.To {
	case breaker.Open:
		if c.From == breaker.HalfOpen { // it was out all the time
			return
		}
		attrs := []any{"endpoint", key, "until", c.NextProbe}
		if c.Err != nil {
			attrs = append(attrs, "error", c.Err)
		}
		e.log.Warn("endpoint tripped", attrs...)
	case breaker.Closed:
		e.log.Info("endpoint no longer tripped", "endpoint", key)
	case breaker.HalfOpen:
	}
}

// endpoint tells of endpoints that come and go, and of what is wrong with them. That one is busy is neither.
func (e *events) endpoint(ev balance.Event) {
	attrs := []any{}
	if ev.Key != "" {
		attrs = append(attrs, "endpoint", ev.Key)
	}
	if ev.Err != nil {
		attrs = append(attrs, "error", ev.Err)
	}
	e.log.Log(context.Background(), e.level(ev, time.Now()), ev.Kind.String(), attrs...)
}

// level is how much an event matters. One that fails is tried again and again, and fails again and again.
func (e *events) level(ev balance.Event, now time.Time) slog.Level {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch ev.Kind {
	case balance.EndpointAdded:
		return slog.LevelInfo
	case balance.EndpointRemoved:
		delete(e.failing, ev.Key)
		return slog.LevelInfo
	case balance.EndpointReady:
		if e.failing[ev.Key] {
			delete(e.failing, ev.Key)
			return slog.LevelInfo
		}
	case balance.EndpointFailed:
		if !e.failing[ev.Key] {
			e.failing[ev.Key] = true
			return slog.LevelWarn
		}
	case balance.DiscoveryFailed:
		if text := ev.Err.Error(); text != e.lookups || now.Sub(e.looked) >= reminder {
			e.lookups, e.looked = text, now
			return slog.LevelWarn
		}
	case balance.EndpointClosed:
		return slog.LevelWarn
	case balance.EndpointDialled, balance.ServiceClosed:
	}
	return slog.LevelDebug
}

// reminder is how often an error of discovery is told of as long as it stays the same: nothing says when it is over.
const reminder = time.Minute

// A seldom lets a line into the log once in quiet. The zero seldom has let none.
type seldom struct {
	next    atomic.Int64 // a time.Duration, as at is
	skipped atomic.Uint64
}

// may reports whether it is time for a line, at a time since some beginning, with how many there were not since the last one.
func (s *seldom) may(at time.Duration) (skipped uint64, ok bool) {
	next := s.next.Load()
	if int64(at) < next || !s.next.CompareAndSwap(next, int64(at+quiet)) {
		s.skipped.Add(1)
		return 0, false
	}
	return s.skipped.Swap(0), true
}
