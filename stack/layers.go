package stack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/filter"
	"github.com/belfry-go/belfry/hedge"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/retry"
	"github.com/belfry-go/belfry/shed"
	"github.com/belfry-go/belfry/timeout"
)

// LoadShed adds a [shed.Service]: it refuses exactly when what is inside it is not ready now. It takes at most one Config.
func (s Stack[Req, Res]) LoadShed(cfg ...shed.Config) Stack[Req, Res] {
	c, err := only(cfg)
	return s.add(step[Req, Res]{name: "load shed", err: err, wrap: func(inner belfry.Service[Req, Res], _ *Stack[Req, Res]) belfry.Service[Req, Res] {
		return shed.New(inner, c)
	}})
}

// Buffer adds a [buffer.Service] with bound seats, at least one. It takes at most one Config; without, calls are served
// first come, first served, and wait as long as their contexts allow.
func (s Stack[Req, Res]) Buffer(bound int, cfg ...buffer.Config) Stack[Req, Res] {
	c, err := only(cfg)
	return s.add(step[Req, Res]{
		name:     "buffer",
		kind:     buffers,
		settings: describeBuffer(bound, c),
		err:      errors.Join(err, buffer.Validate(bound, c)),
		wrap: func(inner belfry.Service[Req, Res], _ *Stack[Req, Res]) belfry.Service[Req, Res] {
			return buffer.New(inner, bound, c)
		},
	})
}

// ConcurrencyLimit adds a [limit.Concurrency] of n calls in flight. It takes at most one Config. Each Build makes a Limiter of
// its own; see [Stack.Limiter] for one to share.
func (s Stack[Req, Res]) ConcurrencyLimit(n int, cfg ...limit.Config) Stack[Req, Res] {
	c, err := only(cfg)
	return s.add(step[Req, Res]{
		name:     "concurrency limit",
		settings: fmt.Sprint(n),
		err:      errors.Join(err, limit.ValidateConcurrency(n)),
		wrap: func(inner belfry.Service[Req, Res], st *Stack[Req, Res]) belfry.Service[Req, Res] {
			return limit.NewConcurrency(inner, limit.NewLimiter(n, c), st.sem)
		},
	})
}

// Limiter adds a [limit.Concurrency] over a Limiter that the caller keeps, to share, to watch or to resize it. A stack
// may hold a Limiter only once: a call that needs two places of one limit can wait for itself for ever.
func (s Stack[Req, Res]) Limiter(l *limit.Limiter) Stack[Req, Res] {
	st := step[Req, Res]{name: "concurrency limit", limiter: l}
	if l == nil {
		st.err = errors.New("limiter must not be nil")
		return s.add(st)
	}
	st.wrap = func(inner belfry.Service[Req, Res], s *Stack[Req, Res]) belfry.Service[Req, Res] {
		return limit.NewConcurrency(inner, l, s.sem)
	}
	return s.add(st)
}

// AdaptiveLimit adds a [limit.Adaptive], which finds by itself how many calls in flight there may be. It takes at most one Config.
// Each Build makes an AdaptiveLimiter of its own; for one to share, give [limit.AdaptiveLayer] to Layer.
func (s Stack[Req, Res]) AdaptiveLimit(cfg ...limit.AdaptiveConfig) Stack[Req, Res] {
	c, err := only(cfg)
	return s.add(step[Req, Res]{
		name:     "adaptive limit",
		settings: describeAdaptive(c),
		err:      errors.Join(err, c.Validate()),
		wrap: func(inner belfry.Service[Req, Res], st *Stack[Req, Res]) belfry.Service[Req, Res] {
			return limit.NewAdaptive(inner, limit.NewAdaptiveLimiter(c), st.sem)
		},
	})
}

// RateLimit adds a [limit.Rate] of n calls in each period per. It takes at most one Config; without, the burst is n. Each
// Build makes a RateLimiter of its own; see [Stack.RateLimiter] for one to share.
func (s Stack[Req, Res]) RateLimit(n int, per time.Duration, cfg ...limit.RateConfig) Stack[Req, Res] {
	c, err := only(cfg)
	return s.add(step[Req, Res]{
		name:     "rate limit",
		settings: describeRate(n, per, c),
		err:      errors.Join(err, limit.ValidateRate(n, per, c)),
		wrap: func(inner belfry.Service[Req, Res], _ *Stack[Req, Res]) belfry.Service[Req, Res] {
			return limit.NewRate(inner, limit.NewRateLimiter(n, per, c))
		},
	})
}

// RateLimiter adds a [limit.Rate] over a RateLimiter that the caller keeps, to share, to watch or to change its rate.
func (s Stack[Req, Res]) RateLimiter(l *limit.RateLimiter) Stack[Req, Res] {
	st := step[Req, Res]{name: "rate limit", settings: "shared", rate: l}
	if l == nil {
		st.err = errors.New("rate limiter must not be nil")
		return s.add(st)
	}
	st.wrap = func(inner belfry.Service[Req, Res], _ *Stack[Req, Res]) belfry.Service[Req, Res] {
		return limit.NewRate(inner, l)
	}
	return s.add(st)
}

// RateLimitPerKey adds a [limit.RatePerKey] of n calls in each period per for each key, which key tells of a request. It takes at most
// one Config. Each Build makes a KeyedLimiter of its own. For keys that are no strings, or a KeyedLimiter to share, give
// [limit.RatePerKeyLayer] to Layer.
func (s Stack[Req, Res]) RateLimitPerKey(n int, per time.Duration, key func(Req) string, cfg ...limit.KeyedConfig) Stack[Req, Res] {
	c, err := only(cfg)
	if key == nil {
		err = errors.Join(err, errors.New("key must not be nil"))
	}
	return s.add(step[Req, Res]{
		name:     "rate limit per key",
		settings: describeKeyed(n, per, c),
		err:      errors.Join(err, limit.ValidateKeyed(n, per, c)),
		wrap: func(inner belfry.Service[Req, Res], _ *Stack[Req, Res]) belfry.Service[Req, Res] {
			return limit.NewRatePerKey(inner, limit.NewKeyedLimiter[string](n, per, c), key)
		},
	})
}

// Filter adds a [filter.Service]: judge sees each request before anything inside is reserved for it, and may change it. One that
// changes its type wraps the service outside of the stack, by [filter.New].
func (s Stack[Req, Res]) Filter(judge func(ctx context.Context, req Req) (Req, error)) Stack[Req, Res] {
	return s.add(step[Req, Res]{name: "filter", err: filter.Validate(judge), wrap: func(inner belfry.Service[Req, Res], _ *Stack[Req, Res]) belfry.Service[Req, Res] {
		return filter.New(inner, judge)
	}})
}

// Timeout adds a [timeout.Service] that bounds calls by d, which is above 0. It takes at most one Config.
func (s Stack[Req, Res]) Timeout(d time.Duration, cfg ...timeout.Config) Stack[Req, Res] {
	c, err := only(cfg)
	return s.add(step[Req, Res]{
		name:     "timeout",
		settings: describeTimeout(d, c),
		err:      errors.Join(err, timeout.Validate(d, c)),
		wrap: func(inner belfry.Service[Req, Res], st *Stack[Req, Res]) belfry.Service[Req, Res] {
			return timeout.New(inner, d, c, st.sem)
		},
	})
}

// Retry adds a [retry.Service] with the ready-made behaviour. Unless cfg has a budget, it draws on the stack's.
func (s Stack[Req, Res]) Retry(cfg retry.Config) Stack[Req, Res] {
	own := usual
	if cfg.Budget == nil {
		own = pays
	}
	return s.add(step[Req, Res]{
		name:     "retry",
		settings: describeRetry(cfg),
		err:      cfg.Validate(),
		kind:     own,
		wrap: func(inner belfry.Service[Req, Res], st *Stack[Req, Res]) belfry.Service[Req, Res] {
			c := cfg
			if c.Budget == nil {
				c.Budget = st.budget
			}
			return retry.New(inner, c, st.sem)
		},
	})
}

// RetryPolicy adds a [retry.Service] with a policy of the caller's own; newPolicy makes one for each request.
func (s Stack[Req, Res]) RetryPolicy(newPolicy func() retry.Policy[Req, Res]) Stack[Req, Res] {
	st := step[Req, Res]{name: "retry", settings: "own policy", wrap: func(inner belfry.Service[Req, Res], st *Stack[Req, Res]) belfry.Service[Req, Res] {
		return retry.NewPolicy(inner, newPolicy, st.sem)
	}}
	if newPolicy == nil {
		st.err = errors.New("new policy must not be nil")
	}
	return s.add(st)
}

// Hedge adds a [hedge.Service]. Unless cfg has a budget, it draws on the stack's, into which a retry of the stack pays, if
// there is one that draws on it too. Build refuses a hedge directly over a buffer: the seat of the extra attempt is there
// when its room is not. It takes at most one Config.
func (s Stack[Req, Res]) Hedge(cfg ...hedge.Config) Stack[Req, Res] {
	c, err := only(cfg)
	return s.add(step[Req, Res]{
		name:     "hedge",
		settings: describeHedge(c),
		err:      errors.Join(err, c.Validate()),
		kind:     hedges,
		wrap: func(inner belfry.Service[Req, Res], st *Stack[Req, Res]) belfry.Service[Req, Res] {
			c := c
			if c.Budget == nil {
				c.Budget = st.budget
				c.NoDeposit = c.NoDeposit || st.has(pays)
			}
			return hedge.New(inner, c, st.sem)
		},
	})
}

// Breaker adds a [breaker.Service]. It belongs next to the service, under Retry, whose attempts it counts one by one, and which
// ends when it opens, unless the breaker waits. Behind a balancer each endpoint should have one of its own instead, by
// [breaker.Layer]. It takes at most one Config. Each Build makes a breaker of its own.
func (s Stack[Req, Res]) Breaker(cfg ...breaker.Config) Stack[Req, Res] {
	c, err := only(cfg)
	return s.add(step[Req, Res]{
		name:     "breaker",
		settings: describeBreaker(c),
		err:      errors.Join(err, c.Validate()),
		wrap: func(inner belfry.Service[Req, Res], st *Stack[Req, Res]) belfry.Service[Req, Res] {
			return breaker.New(inner, c, st.sem)
		},
	})
}

// only returns the one Config that was given, or the zero one.
func only[Config any](cfg []Config) (Config, error) {
	var c Config
	if len(cfg) > 0 {
		c = cfg[0]
	}
	if len(cfg) > 1 {
		return c, fmt.Errorf("at most one Config, got %d", len(cfg))
	}
	return c, nil
}
