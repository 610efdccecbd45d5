package hedge_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/hedge"
	"github.com/belfry-go/belfry/internal/attempt"
)

func TestLosers(t *testing.T) {
	bubble(t, "a loser is cancelled, and its context says why", func(t *testing.T) {
		for _, hedgeWins := range []bool{true, false} {
			var cause error
			loses := func(ctx context.Context) (string, error) {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return "", ctx.Err()
			}
			list := []func(context.Context) (string, error){answers(20*ms, "won"), loses}
			if hedgeWins {
				list = []func(context.Context) (string, error){loses, answers(10*ms, "won")}
			}
			begin := time.Now()
			if res, err := belfry.Do(t.Context(), hedge.New(attempts(list...), after()), ""); res != "won" || err != nil {
				t.Errorf("%q, %v", res, err)
			}
			if took := time.Since(begin); took != 20*ms {
				t.Errorf("took %v", took)
			}
			synctest.Wait()
			if !errors.Is(cause, hedge.ErrLost) || !errors.Is(cause, context.Canceled) {
				t.Errorf("hedge wins: %v, the cause was %v", hedgeWins, cause)
			}
		}
	})

	bubble(t, "an extra attempt that has lost may outlive Call, and ends", func(t *testing.T) {
		l := &library{takes: []time.Duration{20 * ms, time.Minute}, docs: []*document{{name: "first"}, {name: "second"}}}
		begin := time.Now()
		res, err := belfry.Do(t.Context(), hedge.New(l.service(), after(), documents), "")
		if err != nil || res.name != "first" || time.Since(begin) != 20*ms {
			t.Fatalf("%+v, %v after %v", res, err, time.Since(begin))
		}
		if n := l.docs[1].closed.Load(); n != 0 {
			t.Fatal("the loser has ended already, so the test shows nothing")
		}
		elapse(2 * time.Minute)
		if n := l.docs[1].closed.Load(); n != 1 {
			t.Errorf("the loser's response was discarded %d times", n)
		}
		if res.closed.Load() != 0 || res.ctx.Err() != nil {
			t.Error("the winner's response, or its context, has ended with the loser")
		}
		res.Close()
	})

	bubble(t, "a first attempt that does not notice that it has lost is waited for", func(t *testing.T) {
		l := &library{takes: []time.Duration{time.Minute, 5 * ms}, docs: []*document{{name: "first"}, {name: "second"}}}
		begin := time.Now()
		res, err := belfry.Do(t.Context(), hedge.New(l.service(), after(), documents), "")
		if err != nil || res.name != "second" || time.Since(begin) != time.Minute || l.docs[0].closed.Load() != 1 {
			t.Errorf("%+v, %v after %v, first closed %d times", res, err, time.Since(begin), l.docs[0].closed.Load())
		}
		res.Close()
	})

	bubble(t, "with Detach it is not", func(t *testing.T) {
		l := &library{takes: []time.Duration{time.Minute, 5 * ms}, docs: []*document{{name: "first"}, {name: "second"}}}
		cfg := after()
		cfg.Detach = true
		begin := time.Now()
		res, err := belfry.Do(t.Context(), hedge.New(l.service(), cfg, documents), "")
		if err != nil || res.name != "second" || time.Since(begin) != 15*ms {
			t.Errorf("%+v, %v after %v", res, err, time.Since(begin))
		}
		res.Close()
		elapse(time.Hour)
		if n := l.docs[0].closed.Load(); n != 1 {
			t.Errorf("the loser's response was discarded %d times", n)
		}
	})

	bubble(t, "with WaitLosers nothing outlives Call", func(t *testing.T) {
		docs := []*document{{name: "first"}, {name: "second"}, {name: "third"}}
		l := &library{takes: []time.Duration{30 * ms, time.Minute, time.Hour}, docs: docs}
		cfg := after()
		cfg.WaitLosers, cfg.MaxHedges = true, 2
		begin := time.Now()
		res, err := belfry.Do(t.Context(), hedge.New(l.service(), cfg, documents), "")
		if took := time.Since(begin); err != nil || res.name != "first" || took != 20*ms+time.Hour {
			t.Errorf("%+v, %v after %v", res, err, took)
		}
		if docs[1].closed.Load() != 1 || docs[2].closed.Load() != 1 || res.closed.Load() != 0 || res.ctx.Err() != nil {
			t.Errorf("closed %d, %d, the winner's %d", docs[1].closed.Load(), docs[2].closed.Load(), res.closed.Load())
		}
		res.Close()
	})

	bubble(t, "a broken response is discarded when a good one comes", func(t *testing.T) {
		l := &library{takes: []time.Duration{12 * ms, 5 * ms}, docs: []*document{{broken: true}, {name: "second"}}}
		res, err := belfry.Do(t.Context(), hedge.New(l.service(), after(), documents), "")
		synctest.Wait() // the attempt that has lost ends on its own
		if err != nil || res.name != "second" || l.docs[0].closed.Load() != 1 {
			t.Errorf("%+v, %v, the first closed %d times", res, err, l.docs[0].closed.Load())
		}
		if l.docs[0].ctx.Err() == nil {
			t.Error("the context of the first lives on")
		}
		res.Close()
	})
}

func TestContext(t *testing.T) {
	type key struct{}
	bubble(t, "the winner's context lives as long as its response, and has the caller's values", func(t *testing.T) {
		for _, takes := range [][]time.Duration{{0, 0}, {20 * ms, time.Second}, {15 * ms, 0}} {
			l := &library{takes: takes, docs: []*document{{}, {}}}
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
			res, err := belfry.Do(ctx, hedge.New(l.service(), after(), documents), "")
			if err != nil || res.ctx.Err() != nil || res.ctx.Value(key{}) != "v" {
				t.Fatalf("%v, %v", err, res.ctx.Err())
			}
			below, end := context.WithCancel(res.ctx)
			elapse(time.Hour)
			if below.Err() != nil {
				t.Errorf("%v: the context ended before the response: %v", takes, context.Cause(below))
			}
			res.Close()
			if !errors.Is(below.Err(), context.Canceled) || res.ctx.Value(key{}) != "v" {
				t.Errorf("%v: the context did not end with the response", takes)
			}
			end()
			cancel()
		}
	})
	bubble(t, "the end of the caller's context reaches the response", func(t *testing.T) {
		l := &library{takes: []time.Duration{15 * ms, 0}, docs: []*document{{}, {}}}
		ctx, cancel := context.WithCancel(t.Context())
		res, err := belfry.Do(ctx, hedge.New(l.service(), after(), documents), "")
		if err != nil {
			t.Fatal(err)
		}
		done := res.ctx.Done()
		cancel()
		<-done
		res.Close()
	})
	bubble(t, "the caller's end cancels all attempts, and sends none", func(t *testing.T) {
		errWhy := errors.New("why")
		for _, at := range []time.Duration{0, 5 * ms, 15 * ms} {
			ctx, cancel := context.WithCancelCause(t.Context())
			var n, ended atomic.Int32
			svc := hedge.New(belfry.Of(func(ctx context.Context, _ string) (string, error) {
				n.Add(1)
				<-ctx.Done()
				if context.Cause(ctx) == errWhy {
					ended.Add(1)
				}
				return "", ctx.Err()
			}), after())
			got := do(ctx, svc, "")
			elapse(at)
			cancel(errWhy)
			if a := done(t, got); !errors.Is(a.err, context.Canceled) {
				t.Errorf("got %v", a.err)
			}
			elapse(time.Hour)
			want := int32(1)
			if at > 10*ms {
				want = 2
			}
			if n.Load() != want || ended.Load() != want {
				t.Errorf("after %v: %d sent, %d ended, want %d", at, n.Load(), ended.Load(), want)
			}
		}
	})
	t.Run("a hedge does not keep goroutines for contexts derived from its own", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		svc := hedge.New(belfry.Of(func(ctx context.Context, _ string) (string, error) {
			before := runtime.NumGoroutine()
			for range 10 {
				_, stop := context.WithCancel(context.WithValue(ctx, key{}, 1))
				defer stop()
			}
			if n := runtime.NumGoroutine() - before; n > 0 {
				t.Errorf("%d goroutines for 10 contexts", n)
			}
			return "", nil
		}), hedge.Config{Delay: time.Hour})
		_, _ = belfry.Do(ctx, svc, "")
	})
	t.Run("concurrent use", func(t *testing.T) {
		for range 200 {
			ctx, cancel := context.WithCancel(t.Context())
			var users sync.WaitGroup
			var dones [8]<-chan struct{}
			svc := hedge.New(belfry.Of(func(ctx context.Context, _ string) (string, error) {
				for i := range dones {
					users.Go(func() {
						_ = ctx.Err()
						dones[i] = ctx.Done()
						_ = context.Cause(ctx)
						if i == 3 {
							cancel()
						}
					})
				}
				users.Wait()
				return "", nil
			}), hedge.Config{Delay: time.Hour})
			_, _ = belfry.Do(ctx, svc, "")
			for _, done := range dones {
				if done != dones[0] {
					t.Fatal("two channels of one context")
				}
			}
			<-dones[0]
		}
	})
}

func TestAttempts(t *testing.T) {
	bubble(t, "only extra attempts are marked, and all tell each other where they went", func(t *testing.T) {
		endpoints := []*int{new(int), new(int), new(int)}
		cfg := after()
		cfg.MaxHedges = 2
		inner := &faulty[string]{call: func(ctx context.Context, n int) (string, error) {
			if attempt.IsHedge(ctx) != (n > 1) {
				t.Errorf("attempt %d is marked: %v", n, attempt.IsHedge(ctx))
			}
			tried := attempt.From(ctx)
			for i, e := range endpoints {
				if got, want := tried.Has(e), i < n-1; got != want {
					t.Errorf("attempt %d: endpoint %d tried: %v", n, i, got)
				}
			}
			tried.Add(endpoints[n-1])
			return answers(35*ms, "")(ctx)
		}}
		_, _ = belfry.Do(t.Context(), hedge.New[string, string](inner, cfg), "")
		if n := inner.n.Load(); n != 3 {
			t.Errorf("%d attempts", n)
		}
	})
	bubble(t, "a retry further out has a set that counts", func(t *testing.T) {
		outer := &attempt.Context{Context: t.Context()}
		svc := hedge.New(belfry.Of(func(ctx context.Context, _ string) (string, error) {
			if attempt.From(ctx) != &outer.Set {
				t.Error("another set")
			}
			return answers(15*ms, "")(ctx)
		}), after())
		_, _ = belfry.Do(outer, svc, "")
		if svc.Stats().Hedges != 1 {
			t.Errorf("%+v", svc.Stats())
		}
	})
	bubble(t, "extra attempts of a hedge further out are not hedged", func(t *testing.T) {
		var n atomic.Int32
		leaf := belfry.Of(func(ctx context.Context, _ string) (string, error) {
			n.Add(1)
			return answers(time.Second, "")(ctx)
		})
		svc := hedge.New[string, string](hedge.New(leaf, after()), after())
		_, _ = belfry.Do(t.Context(), svc, "")
		if n.Load() != 3 { // the first, its hedge inside, the outer hedge
			t.Errorf("%d attempts", n.Load())
		}
	})
	bubble(t, "a hedge over a full service is not sent, and takes nobody's turn", func(t *testing.T) {
		backend, inner := belfrytest.NewBackend[string, string](t)
		svc := hedge.New(inner, after())
		backend.Allow(1)
		got := do(t.Context(), svc, "a")
		r := backend.Expect("a")
		waiter := do(t.Context(), svc, "b")
		elapse(time.Second)
		if backend.Waiting() != 1 {
			t.Errorf("%d wait", backend.Waiting())
		}
		r.Answer("A")
		done(t, got)
		backend.Allow(1)
		backend.Expect("b").Answer("B")
		done(t, waiter)
	})
}

func TestPanics(t *testing.T) {
	type thrown struct{}
	panics := func(d time.Duration) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { time.Sleep(d); panic(thrown{}) }
	}
	exits := func(d time.Duration) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { time.Sleep(d); runtime.Goexit(); return "", nil }
	}
	// how says how a Do ends.
	how := func(t *testing.T, svc belfry.Service[string, string]) (value any, returned bool) {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer func() { value = recover() }()
			_, _ = belfry.Do(t.Context(), svc, "")
			returned = true
		}()
		<-ended
		return value, returned
	}
	for _, detach := range []bool{false, true} {
		cfg := after()
		cfg.Detach = detach
		name := map[bool]string{false: "inline: ", true: "detached: "}[detach]
		for what, list := range map[string][]func(context.Context) (string, error){
			"of the first attempt":                      {panics(0)},
			"of the first attempt, with a hedge":        {panics(20 * ms), answers(time.Second, "")},
			"of a hedge":                                {answers(time.Second, ""), panics(0)},
			"of a hedge, after the first has failed":    {fails(12*ms, errBoom), panics(5 * ms)},
			"of the first attempt, when a hedge failed": {panics(20 * ms), fails(0, errBoom)},
		} {
			bubble(t, name+"a panic "+what+" is the caller's", func(t *testing.T) {
				if v, returned := how(t, hedge.New(attempts(list...), cfg)); v != (thrown{}) || returned {
					t.Errorf("got %v, returned %v", v, returned)
				}
			})
		}
		for what, list := range map[string][]func(context.Context) (string, error){
			"of the first attempt": {exits(0)},
			"of a hedge":           {answers(time.Second, ""), exits(0)},
		} {
			bubble(t, name+"Goexit "+what+" is the caller's", func(t *testing.T) {
				if v, returned := how(t, hedge.New(attempts(list...), cfg)); v != nil || returned {
					t.Errorf("got %v, returned %v", v, returned)
				}
			})
		}
	}
	bubble(t, "a panic after the answer is told to OnPanic", func(t *testing.T) {
		var told atomic.Value
		cfg := after()
		cfg.OnPanic = func(v any) { told.Store(v) }
		svc := hedge.New(attempts(answers(15*ms, "answer"), panics(time.Second)), cfg)
		if res, err := belfry.Do(t.Context(), svc, ""); res != "answer" || err != nil {
			t.Errorf("%q, %v", res, err)
		}
		elapse(time.Minute)
		if told.Load() != (thrown{}) || svc.Stats().Panics != 1 {
			t.Errorf("told %v, %+v", told.Load(), svc.Stats())
		}
		svc = hedge.New(attempts(answers(15*ms, "answer"), exits(time.Second)), cfg)
		_, _ = belfry.Do(t.Context(), svc, "")
		elapse(time.Minute)
		if svc.Stats().Panics != 0 {
			t.Errorf("%+v", svc.Stats())
		}
	})
	bubble(t, "a panic of what decides about a hedge is the caller's, and leaves nothing reserved", func(t *testing.T) {
		for what, c := range map[string]func(cfg *hedge.Config, sem *belfry.Semantics[string, string]){
			"Idempotent": func(_ *hedge.Config, sem *belfry.Semantics[string, string]) {
				sem.Idempotent = func(string) bool { panic(thrown{}) }
			},
			"Copy": func(_ *hedge.Config, sem *belfry.Semantics[string, string]) {
				sem.Copy = func(string) (string, bool) { panic(thrown{}) }
			},
			"OnHedge": func(cfg *hedge.Config, _ *belfry.Semantics[string, string]) {
				cfg.OnHedge = func(hedge.Event) { panic(thrown{}) }
			},
		} {
			backend, inner := belfrytest.NewBackend[string, string](t)
			backend.Allow(2)
			cfg, sem := after(), belfry.Semantics[string, string]{}
			c(&cfg, &sem)
			ended := make(chan any)
			go func() {
				v, _ := how(t, hedge.New(inner, cfg, sem))
				ended <- v
			}()
			backend.Next()
			elapse(time.Second)
			if v := <-ended; v != (thrown{}) || backend.Held() != 0 || backend.Free() != 1 {
				t.Errorf("%s: got %v, %d held, %d free", what, v, backend.Held(), backend.Free())
			}
		}
	})
	bubble(t, "a response whose first attempt panics is discarded", func(t *testing.T) {
		doc := &document{broken: true}
		inner := &faulty[*document]{call: func(_ context.Context, n int) (*document, error) {
			if n == 1 {
				time.Sleep(20 * ms)
				panic(thrown{})
			}
			return doc, nil
		}}
		func() {
			defer func() { _ = recover() }()
			_, _ = belfry.Do(t.Context(), hedge.New[string, *document](inner, after(), documents), "")
		}()
		if doc.closed.Load() != 1 {
			t.Errorf("closed %d times", doc.closed.Load())
		}
	})
	bubble(t, "a panic of Classify leaves no response, of Discard no goroutine", func(t *testing.T) {
		l := &library{takes: []time.Duration{20 * ms, 0}, docs: []*document{{}, {}}}
		sem := documents
		sem.Classify = func(*document, error) belfry.Outcome { panic(thrown{}) }
		func() {
			defer func() {
				if v := recover(); v != (thrown{}) {
					t.Errorf("got %v", v)
				}
			}()
			_, _ = belfry.Do(t.Context(), hedge.New(l.service(), after(), sem), "")
		}()
		if l.docs[0].closed.Load() != 1 || l.docs[1].closed.Load() != 1 {
			t.Errorf("closed %d and %d times", l.docs[0].closed.Load(), l.docs[1].closed.Load())
		}
		l = &library{takes: []time.Duration{20 * ms, time.Second}, docs: []*document{{}, {}}}
		sem = documents
		sem.Discard = func(*document) { panic(thrown{}) }
		svc := hedge.New(l.service(), after(), sem)
		res, err := belfry.Do(t.Context(), svc, "")
		if err != nil {
			t.Fatal(err)
		}
		res.Close()
		elapse(time.Minute)
		if svc.Stats().Panics != 1 {
			t.Errorf("%+v", svc.Stats())
		}
	})
}
