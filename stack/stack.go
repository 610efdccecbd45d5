// Package stack puts layers together: outermost first, mistakes collected, settings that layers share given once.
//
//	svc, err := stack.New[string, int]().
//		LoadShed().
//		Buffer(64).
//		ConcurrencyLimit(8).
//		Timeout(time.Second).
//		Retry(retry.Config{MaxAttempts: 3}).
//		Build(belfry.Of(length))
//
// The layer added first sees a request first; the last one added is next to the service. A [Stack] is a value:
// each method returns a changed copy, so one may serve as the beginning of several, and one stack may be built over
// many services, concurrently too. What a stack builds is independent of what it built before, with two exceptions that are
// their purpose: a [limit.Limiter] given by the caller, and the budget for extra attempts.
//
// # Order
//
// Outer layers reserve before inner ones, so a limit counts the calls that wait behind it. LoadShed goes outermost,
// where it turns "not ready now" into an answer; a Buffer under it waits for the limit inside. A Timeout outside Retry
// bounds all attempts and their waits together; inside, each attempt has its own. A Limiter that several stacks share
// belongs innermost, in the same order everywhere, lest two of them wait for each other.
//
// Methods keep the request and response types. What changes them (belfry.MapRequest and its kin) wraps the service
// before or after.
package stack

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/limit"
)

// A Stack is a list of layers with the settings that they share. Make one with [New]. Its methods may be called
// concurrently; a Stack does not change once made.
type Stack[Req, Res any] struct {
	steps  []step[Req, Res]
	sem    belfry.Semantics[Req, Res]
	budget *budget.Budget
}

// A step is one layer: how it reads, what is wrong with it, and how it wraps.
type step[Req, Res any] struct {
	name     string
	settings string             // of the layer, in parentheses; may be empty
	err      error              // found when the step was added
	limiter  *limit.Limiter     // that the caller keeps, and may resize; it may stand in a stack only once
	rate     *limit.RateLimiter // likewise
	kind     kind
	wrap     func(inner belfry.Service[Req, Res], s *Stack[Req, Res]) belfry.Service[Req, Res]
}

// A kind is what other layers of a stack need to know of a step.
type kind uint8

const (
	usual   kind = iota
	buffers      // it has seats
	hedges       // it reserves inside Call, and does not queue
	pays         // it deposits successes into the stack's budget
)

func (s step[Req, Res]) String() string {
	switch {
	case s.limiter != nil:
		return s.name + "(" + describeLimiter(s.limiter) + ")"
	case s.settings == "":
		return s.name
	}
	return s.name + "(" + s.settings + ")"
}

// New returns a stack without layers. Its budget for extra attempts is the default one, shared by all the services
// that this stack and the stacks made from it build.
func New[Req, Res any]() Stack[Req, Res] {
	return Stack[Req, Res]{budget: budget.New(budget.Config{})}
}

// Semantics sets what the protocol means, for all layers of the stack, also those added before.
func (s Stack[Req, Res]) Semantics(sem belfry.Semantics[Req, Res]) Stack[Req, Res] {
	s.sem = sem
	return s
}

// Budget sets the budget that retries and hedges of the stack draw on, unless their own Config names another. One
// budget may serve several stacks. Nil is refused by Build.
func (s Stack[Req, Res]) Budget(b *budget.Budget) Stack[Req, Res] {
	if b == nil {
		return s.Fail("budget", errors.New("must not be nil"))
	}
	s.budget = b
	return s
}

// Layer adds a layer of the caller's own, under the name that String and errors show.
func (s Stack[Req, Res]) Layer(name string, layer belfry.Layer[Req, Res]) Stack[Req, Res] {
	st := step[Req, Res]{name: name, wrap: func(inner belfry.Service[Req, Res], _ *Stack[Req, Res]) belfry.Service[Req, Res] {
		return layer(inner)
	}}
	if layer == nil {
		st.err = errors.New("layer must not be nil")
	}
	return s.add(st)
}

// Fail adds a mistake under a name, for whoever prepares a stack for others out of settings that may be wrong: Build
// reports it with those of the layers. A nil err adds nothing.
func (s Stack[Req, Res]) Fail(name string, err error) Stack[Req, Res] {
	if err == nil {
		return s
	}
	return s.add(step[Req, Res]{name: name, err: err})
}

// add returns s with st as its innermost layer. The steps are copied, for s may have other descendants.
func (s Stack[Req, Res]) add(st step[Req, Res]) Stack[Req, Res] {
	s.steps = append(slices.Clip(s.steps), st)
	return s
}

// Build wraps svc in the layers. An empty stack returns svc itself. Its error joins all mistakes of the stack, each
// with the position and the name of its layer; where there is one, nothing is built.
func (s Stack[Req, Res]) Build(svc belfry.Service[Req, Res]) (belfry.Service[Req, Res], error) {
	if err := s.check(svc); err != nil {
		return nil, err
	}
	for _, st := range slices.Backward(s.steps) {
		if svc = st.wrap(svc, &s); svc == nil {
			return nil, fmt.Errorf("stack: layer %s returned no service", st.name)
		}
	}
	return svc, nil
}

func (s *Stack[Req, Res]) check(svc belfry.Service[Req, Res]) error {
	var errs []error
	if svc == nil {
		errs = append(errs, errors.New("stack: service must not be nil"))
	}
	if s.budget == nil {
		errs = append(errs, errors.New("stack: made without New"))
	}
	seen := map[*limit.Limiter]int{}
	rates := map[*limit.RateLimiter]int{}
	for i, st := range s.steps {
		err := st.err
		if first, twice := seen[st.limiter]; twice && st.limiter != nil {
			err = errors.Join(err, fmt.Errorf("the same Limiter as in layer %d: a call would wait for itself", first))
		}
		if first, twice := rates[st.rate]; twice && st.rate != nil {
			err = errors.Join(err, fmt.Errorf("the same RateLimiter as in layer %d: each call would count twice", first))
		}
		if st.kind == hedges && i+1 < len(s.steps) && s.steps[i+1].kind == buffers {
			err = errors.Join(err, errors.New("must not be directly over a buffer: what is not ready now is not hedged, and there is always a seat"))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("stack: layer %d, %s: %w", i+1, st.name, err))
		}
		seen[st.limiter], rates[st.rate] = i+1, i+1
	}
	return errors.Join(errs...)
}

func (s *Stack[Req, Res]) has(k kind) bool {
	return slices.ContainsFunc(s.steps, func(st step[Req, Res]) bool { return st.kind == k })
}

// String lists the layers in the order in which a request meets them, each with what matters most and what is not the
// default. A Limiter of the caller's shows the size that it has now.
//
//	load shed → buffer(64, FIFO) → concurrency limit(8) → timeout(1s)
func (s Stack[Req, Res]) String() string {
	if len(s.steps) == 0 {
		return "no layers"
	}
	names := make([]string, len(s.steps))
	for i, st := range s.steps {
		names[i] = st.String()
	}
	return strings.Join(names, " → ")
}
