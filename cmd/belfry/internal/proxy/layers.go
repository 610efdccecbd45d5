package proxy

import (
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/belfry-go/belfry/belfryhttp"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/hedge"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/retry"
	"github.com/belfry-go/belfry/shed"
	"github.com/belfry-go/belfry/timeout"
)

// layers are what one configuration puts above the balancer.
type layers struct {
	tripper *belfryhttp.Tripper
	text    string
	active  atomic.Int64 // RoundTrips

	shed    *shed.Service[*http.Request, *http.Response] // nil: there is none
	buffer  *buffer.Service[*http.Request, *http.Response]
	timeout *timeout.Service[*http.Request, *http.Response]
	retry   *retry.Service[*http.Request, *http.Response]
	hedge   *hedge.Service[*http.Request, *http.Response] // nil: there is none
}

// newLayers puts layers together, outermost first: who comes too often or has no seat is shed; a seat is for waiting until there is a place; a
// place is for one call with all its attempts, which one deadline bounds, and another, if there is one, each attempt; each goes to
// the better of two servers that have room.
func (u *upstream) newLayers(cfg Config, paid *budget.Budget) (*layers, error) {
	l := &layers{}
	meaning := belfryhttp.Config{BodyBuffer: cfg.ReplayBytes}
	sem := u.endpoints.meaning
	s := belfryhttp.NewStack(meaning)
	if cfg.Shed {
		s = s.Layer("load shed", func(inner service) service {
			l.shed = shed.New(inner, shed.Config{OnReject: u.told.refusal(byShed)})
			return l.shed
		})
	}
	if r := cfg.Rate; r.PerSecond > 0 {
		s = s.Layer("rate limit("+r.String()+")", func(inner service) service { return limit.NewRate(inner, u.rate) })
	}
	s = s.Layer(fmt.Sprintf("buffer(%d, max wait %v)", cfg.Buffer, cfg.BufferWait), func(inner service) service {
		l.buffer = buffer.New(inner, cfg.Buffer, buffer.Config{
			MaxWait: cfg.BufferWait, OnAdmit: u.told.admit, OnReject: u.told.refusal(byBuffer),
		})
		return l.buffer
	})
	s = s.Layer(fmt.Sprintf("concurrency limit(%d)", cfg.Limit), func(inner service) service {
		return limit.NewConcurrency(inner, u.limiter, sem)
	})
	s = s.Layer(fmt.Sprintf("timeout(%v)", cfg.Timeout), func(inner service) service {
		l.timeout = timeout.New(inner, cfg.Timeout, timeout.Config{OnTimeout: u.told.refusal(byTimeout)}, sem)
		return l.timeout
	})
	s = s.Layer(fmt.Sprintf("retry(%d attempts)", cfg.Attempts), func(inner service) service {
		l.retry = retry.New(inner, retry.Config{MaxAttempts: cfg.Attempts, Budget: paid, OnRetry: u.told.retry}, sem)
		return l.retry
	})
	if h := cfg.Hedge; h.on() {
		s = s.Layer("hedge("+h.String()+")", func(inner service) service {
			l.hedge = hedge.New(inner, h.config(paid, u.told.hedged), sem)
			return l.hedge
		})
	}
	if cfg.Attempts > 1 && cfg.AttemptTimeout > 0 {
		s = s.Layer(fmt.Sprintf("attempt timeout(%v)", cfg.AttemptTimeout), func(inner service) service {
			return newAttempts(inner, cfg, u.told.refusal(byAttempt), sem)
		})
	}
	svc, err := s.Build(u.servers)
	if err != nil {
		return nil, err
	}
	l.tripper, l.text = belfryhttp.RoundTripper(svc, meaning), s.String()
	return l, nil
}

// counts are what several layers have counted, added up.
type counts struct {
	shed    uint64
	buffer  buffer.Stats
	timeout timeout.Stats
	retry   retry.Stats
	hedge   hedge.Stats
	budget  budget.Stats
}

// counts returns what l has counted.
func (l *layers) counts() counts {
	c := counts{buffer: l.buffer.Stats(), timeout: l.timeout.Stats(), retry: l.retry.Stats()}
	if l.shed != nil {
		c.shed = l.shed.Stats().Shed
	}
	if l.hedge != nil {
		c.hedge = l.hedge.Stats()
	}
	return c
}

func (c *counts) add(o counts) {
	c.shed += o.shed
	b := &c.buffer
	b.Seated += o.buffer.Seated
	b.Queued += o.buffer.Queued
	b.Waiting += o.buffer.Waiting
	b.Admitted += o.buffer.Admitted
	b.Rejected += o.buffer.Rejected
	b.Cancelled += o.buffer.Cancelled
	b.Expired += o.buffer.Expired
	b.Failed += o.buffer.Failed
	c.timeout.Calls += o.timeout.Calls
	c.timeout.Waits += o.timeout.Waits
	r := &c.retry
	r.Calls += o.retry.Calls
	r.Attempts += o.retry.Attempts
	r.Retries += o.retry.Retries
	r.OutOfAttempts += o.retry.OutOfAttempts
	r.OutOfBudget += o.retry.OutOfBudget
	r.OutOfTime += o.retry.OutOfTime
	r.NotCopyable += o.retry.NotCopyable
	r.TooLong += o.retry.TooLong
	r.Final += o.retry.Final
	r.Unready += o.retry.Unready
	h := &c.hedge
	h.Calls += o.hedge.Calls
	h.Hedges += o.hedge.Hedges
	h.Won += o.hedge.Won
	h.NotAllowed += o.hedge.NotAllowed
	h.OutOfBudget += o.hedge.OutOfBudget
	h.NotReady += o.hedge.NotReady
	h.Panics += o.hedge.Panics
	h.Delay = o.hedge.Delay // of the newest
}

// spend adds what a budget has counted. The balance is that of the last.
func (c *counts) spend(o budget.Stats) {
	c.budget.Balance, c.budget.Unlimited = o.Balance, o.Unlimited
	c.budget.Deposits += o.Deposits
	c.budget.Withdrawals += o.Withdrawals
	c.budget.Refused += o.Refused
}

func (h Hedge) on() bool { return h.Delay > 0 || h.Percentile > 0 }

// String says when an extra attempt is sent.
func (h Hedge) String() string {
	text := fmt.Sprintf("after %v", h.Delay)
	if h.Delay == 0 {
		text = fmt.Sprintf("after percentile %g", h.Percentile)
	}
	if h.Max > 1 {
		text += fmt.Sprintf(", max %d", h.Max)
	}
	return text
}

// config is h for the layer. The retry pays successes into the budget. A request is the server's again when its handler has
// returned, so losers are waited for; an http.Transport notices at once that they are cancelled.
func (h Hedge) config(paid *budget.Budget, told func(hedge.Event)) hedge.Config {
	return hedge.Config{
		Delay: h.Delay, Percentile: h.Percentile, MaxHedges: h.Max, Budget: paid, NoDeposit: true, WaitLosers: true, OnHedge: told,
	}
}

// orAny is r, or a rate that does not matter for nobody asks.
func (r Rate) orAny() Rate {
	if r.PerSecond == 0 {
		return Rate{PerSecond: 1}
	}
	return r
}

// String says how many.
func (r Rate) String() string {
	if r.Burst == 0 {
		return fmt.Sprintf("%d per 1s", r.PerSecond)
	}
	return fmt.Sprintf("%d per 1s, burst %d", r.PerSecond, r.Burst)
}
