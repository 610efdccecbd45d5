package balance_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/load"
)

func TestChoice(t *testing.T) {
	bubble(t, "D11 nothing is reserved on endpoints that were not chosen", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		for _, addr := range []string{"a", "b", "c"} {
			w.backend(addr).Allow(1)
		}
		w.add("a", "b", "c")
		if a, b, c := w.backend("a").Held(), w.backend("b").Held(), w.backend("c").Held(); a+b+c != 0 {
			t.Fatalf("%d, %d and %d are held before any Acquire", a, b, c)
		}
		permit, _ := w.reserve()
		total := 0
		for _, n := range w.held() {
			total += n
		}
		if total != 1 {
			t.Fatalf("one Acquire reserved %d", total)
		}
		w.Release(permit)
	})
	bubble(t, "S15 an endpoint that stops being ready is skipped, and harms no other", func(t *testing.T) {
		w := newWorld(t, balance.Config{Load: load.Constant(nil)})
		for _, addr := range []string{"a", "b", "c"} {
			w.backend(addr).Allow(100)
		}
		w.add("a", "b", "c")
		w.backend("b").Close()
		for range 50 {
			w.backend("c").FailAcquire(&belfry.Rejection{Err: belfry.ErrNotReady})
			permit, at := w.reserve()
			if at == "b" {
				t.Fatal("a closed endpoint granted a permit")
			}
			w.answer(permit, at, 1)
		}
		if got := w.endpoint("b"); got.State != balance.Closed || !errors.Is(got.Err, belfry.ErrClosed) {
			t.Errorf("b is %v, error %v", got.State, got.Err)
		}
	})
	bubble(t, "the only free endpoint of many is found", func(t *testing.T) {
		w := newWorld(t, balance.Config{Load: load.Constant(nil)})
		for i := range 100 {
			w.add(strconv.Itoa(i))
		}
		for i := range 100 {
			w.backend(strconv.Itoa(i)).Allow(1)
			w.do(strconv.Itoa(i), i)
			w.wantRefused()
		}
	})
	bubble(t, "S2 constant loads of 0, 1 and 10", func(t *testing.T) {
		cost := map[string]float64{"a": 0, "b": 1, "c": 10}
		w := fixed(t, load.Constant(func(key string) float64 { return cost[key] }), 3)
		counts := w.calls(9000)
		if counts["a"] < 5800 || counts["a"] > 6200 || counts["c"] != 0 {
			t.Errorf("9000 calls went %v, want about 6000, 3000 and 0", counts)
		}
	})
	bubble(t, "S18 with constant load balancing is uniform", func(t *testing.T) {
		w := fixed(t, load.Constant(nil), 3)
		sum := 0.0
		const n, want = 9000, 3000.0
		for _, c := range w.calls(n) {
			sum += (float64(c) - want) * (float64(c) - want) / want
		}
		if sum > 13.8 { // one in a thousand, for two degrees of freedom
			t.Errorf("chi-square %.1f: %v", sum, w.calls(0))
		}
	})
	bubble(t, "D16 a busy endpoint does not get everything when it is the last that is ready", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.backend("a").Allow(2) // its room
		w.add("a", "b")         // b is not ready
		first, _ := w.reserve()
		second, _ := w.reserve()
		third := w.wait()
		third.wantWaiting()
		w.backend("b").Allow(1)
		third.wantGranted()
		w.answer(third.permit, "b", 3)
		w.Release(first)
		w.Release(second)
	})
	bubble(t, "D48 an attempt avoids the endpoints of earlier ones while others are ready", func(t *testing.T) {
		cost := map[string]float64{"a": 0, "b": 1, "c": 10}
		w := newWorld(t, balance.Config{Load: load.Constant(func(key string) float64 { return cost[key] })})
		for addr := range cost {
			w.backend(addr).Allow(1000)
		}
		w.add("a", "b", "c")
		for range 20 {
			ctx := &attempt.Context{Context: t.Context()}
			tried := map[string]bool{}
			for i := range 4 {
				before := w.held()
				permit, err := w.Acquire(ctx)
				if err != nil {
					t.Fatal(err)
				}
				at := ""
				for addr, n := range w.held() {
					if n > before[addr] {
						at = addr
					}
				}
				if tried[at] && i < 3 {
					t.Fatalf("attempt %d goes to %s again", i+1, at)
				}
				tried[at] = true
				done := make(chan error, 1)
				go func() {
					_, err := w.Call(ctx, permit, i)
					done <- err
				}()
				w.backend(at).Expect(i).Fail(errLost)
				wantEnd(t, done, errLost)
			}
		}
	})
	bubble(t, "D48 an endpoint that was tried is better than none", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.backend("a").Allow(2)
		w.add("a", "b")
		ctx := &attempt.Context{Context: t.Context()}
		for i := range 2 {
			permit, err := w.Acquire(belfry.NoWait(ctx))
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				_, err := w.Call(ctx, permit, i)
				done <- err
			}()
			w.backend("a").Expect(i).Fail(errLost)
			wantEnd(t, done, errLost)
		}
	})
	bubble(t, "D48 a balancer of balancers", func(t *testing.T) {
		var inner []*world
		outer := &world{}
		outer.dial = func(_ context.Context, key, _ string) (service, error) {
			i, _ := strconv.Atoi(key)
			return inner[i].balancer, nil
		}
		for range 2 {
			w := newWorld(t, balance.Config{})
			w.backend("a").Allow(10)
			w.backend("b").Allow(10)
			w.add("a", "b")
			inner = append(inner, w)
		}
		newWorldOf(t, outer, balance.Config{})
		outer.add("0", "1")
		ctx := &attempt.Context{Context: t.Context()}
		counts := map[*world]int{}
		for i := range 4 {
			permit, err := outer.Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				_, err := outer.Call(ctx, permit, i)
				done <- err
			}()
			synctest.Wait()
			for _, w := range inner {
				for _, ep := range w.Stats().Endpoints {
					if ep.InFlight > 0 {
						counts[w]++
						w.backend(ep.Addr).Expect(i).Answer(0)
					}
				}
			}
			wantEnd(t, done, nil)
		}
		// The first two attempts went to different balancers; inside each, the later ones avoid its endpoint of before.
		for _, w := range inner {
			for _, ep := range w.Stats().Endpoints {
				if counts[w] == 2 && ep.Successes != 1 {
					t.Errorf("%s had %d of two attempts", ep.Addr, ep.Successes)
				}
			}
		}
		if counts[inner[0]]+counts[inner[1]] != 4 || counts[inner[0]] == 0 || counts[inner[1]] == 0 {
			t.Errorf("attempts went %d and %d", counts[inner[0]], counts[inner[1]])
		}
	})
}

// A counting world is one whose endpoints are functions that count.
type counting struct {
	*world
	counts map[string]int
}

// fixed makes one of n endpoints, with a fixed seed.
func fixed(t *testing.T, metric load.Metric, n int) *counting {
	const seed = 7
	t.Logf("seed %d", seed)
	c := &counting{counts: map[string]int{}}
	c.world = newWorldOf(t, &world{dial: func(_ context.Context, key, _ string) (service, error) {
		return belfry.Of(func(context.Context, int) (int, error) {
			c.counts[key]++
			return 0, nil
		}), nil
	}}, balance.Config{Load: metric, Rand: rand.NewPCG(seed, seed)})
	for i := range n {
		c.add(string(rune('a' + i)))
	}
	return c
}

func (c *counting) calls(n int) map[string]int {
	for range n {
		if _, err := belfry.Do(c.t.Context(), c.balancer, 0); err != nil {
			c.t.Fatal(err)
		}
	}
	return c.counts
}

// A breaker is open after a failure until it is told otherwise, or until it lets a probe through.
type breaker struct {
	service
	until atomic.Int64
	asked atomic.Int64
	begun time.Time
}

func (b *breaker) Acquire(ctx context.Context) (belfry.Permit, error) {
	b.asked.Add(1)
	if left := time.Duration(b.until.Load()) - time.Since(b.begun); left > 0 {
		return belfry.Permit{}, &belfry.Rejection{Layer: "breaker", Reason: "open", RetryAfter: left, Err: belfry.ErrNotReady}
	}
	return b.service.Acquire(ctx)
}

func (b *breaker) open(d time.Duration) { b.until.Store(int64(time.Since(b.begun) + d)) }

func TestBreaker(t *testing.T) {
	build := func(t *testing.T, n int) (*counting, []*breaker) {
		w := fixed(t, load.Constant(nil), 0)
		var breakers []*breaker
		dial := w.dial
		w.dial = func(ctx context.Context, key, addr string) (service, error) {
			svc, err := dial(ctx, key, addr)
			b := &breaker{service: svc, begun: time.Now()}
			breakers = append(breakers, b)
			return b, err
		}
		for i := range n {
			w.add(string(rune('a' + i)))
		}
		return w, breakers
	}
	bubble(t, "S16 an open breaker takes its endpoint out, and brings it back", func(t *testing.T) {
		w, breakers := build(t, 3)
		breakers[0].open(time.Minute)
		if counts := w.calls(100); counts["a"] != 0 {
			t.Fatalf("calls went %v", counts)
		}
		w.wantStates("a:not ready b:ready c:ready")
		time.Sleep(time.Minute)
		if counts := w.calls(100); counts["a"] < 15 {
			t.Fatalf("calls went %v", counts)
		}
		w.wantStates("a:ready b:ready c:ready")
	})
	bubble(t, "S16 the shortest pause that endpoints ask for is passed on, if all of them do", func(t *testing.T) {
		w, breakers := build(t, 3)
		for i, b := range breakers {
			b.open(time.Duration(10*(i+1)) * time.Second)
		}
		for range 10 { // in whatever order they are asked
			if got := belfry.RetryAfter(w.refused()); got != 10*time.Second {
				t.Fatalf("told to come again after %v, want 10s", got)
			}
		}
		breakers[1].open(0)
		breakers[1].service = acquiring{echo(), func(context.Context) (belfry.Permit, error) { return belfry.Permit{}, errFull }}
		for range 10 {
			if got := belfry.RetryAfter(w.refused()); got != 0 {
				t.Fatalf("told to come again after %v, and one endpoint may be ready at any time", got)
			}
		}
	})
	bubble(t, "S16 a refusal is no failure, in whatever it is wrapped", func(t *testing.T) {
		refuse := false
		w := &world{dial: func(context.Context, string, string) (service, error) {
			return acquiring{echo(), func(context.Context) (belfry.Permit, error) {
				if refuse {
					return belfry.Permit{}, fmt.Errorf("wrapped: %w", errFull)
				}
				return belfry.Permit{}, nil
			}}, nil
		}}
		newWorldOf(t, w, balance.Config{})
		w.add("a")
		refuse = true
		w.wantRefused()
		w.wantStates("a:not ready")
		if got := w.endpoint("a").Err; got != nil {
			t.Errorf("the error of a is %v", got)
		}
	})
	bubble(t, "S16 waiters are handed what a breaker lets through, after the pause that it asks for", func(t *testing.T) {
		w, breakers := build(t, 2)
		for _, b := range breakers {
			b.open(time.Minute)
		}
		if err := w.refused(); belfry.RetryAfter(err) != time.Minute {
			t.Errorf("%v asks for %v", err, belfry.RetryAfter(err))
		}
		a := w.wait()
		time.Sleep(time.Minute - 1)
		a.wantWaiting()
		for _, b := range breakers {
			if n := b.asked.Load(); n > 4 {
				t.Errorf("an open breaker was asked %d times in a minute", n)
			}
		}
		time.Sleep(time.Nanosecond)
		a.wantGranted()
		w.Release(a.permit)
	})
	bubble(t, "S16 a refusal without a pause is not repeated in a hurry", func(t *testing.T) {
		var asked atomic.Int64
		w := &world{dial: func(context.Context, string, string) (service, error) {
			return acquiring{echo(), func(context.Context) (belfry.Permit, error) {
				asked.Add(1)
				return belfry.Permit{}, &belfry.Rejection{Err: belfry.ErrNotReady}
			}}, nil
		}}
		newWorldOf(t, w, balance.Config{})
		w.add("a")
		a := w.wait()
		time.Sleep(10 * time.Second)
		if n := asked.Load(); n < 100 || n > 1000 {
			t.Errorf("asked %d times in 10 s, want a pause of 5 to 100 ms between", n)
		}
		a.cancel()
		a.wantFailed()
	})
}

// acquiring is a service with another Acquire.
type acquiring struct {
	service
	acquire func(ctx context.Context) (belfry.Permit, error)
}

func (a acquiring) Acquire(ctx context.Context) (belfry.Permit, error) { return a.acquire(ctx) }

func TestLoad(t *testing.T) {
	bubble(t, "LD1 pending requests count from their start to their end", func(t *testing.T) {
		w := newWorld(t, balance.Config{Load: load.Pending{}})
		w.backend("a").Allow(2)
		w.add("a")
		want := func(cost float64) {
			t.Helper()
			if got := w.endpoint("a").Cost; got != cost {
				t.Fatalf("the load is %v, want %v", got, cost)
			}
		}
		want(0)
		var done []chan error
		for i := range 2 {
			permit, _ := w.reserve()
			done = append(done, w.call(permit, i))
			want(float64(i + 1))
		}
		for i := range 2 {
			w.backend("a").Expect(i).Answer(0)
			wantEnd(t, done[i], nil)
			want(float64(1 - i))
		}
	})
	bubble(t, "LD2 a streamed response counts until it ends", func(t *testing.T) {
		var ends []func()
		w := newWorld(t, balance.Config{Load: load.Pending{}}, belfry.Semantics[int, int]{Until: func(res int, done func()) int {
			ends = append(ends, done)
			return res
		}})
		w.backend("a").Allow(2)
		w.add("a")
		for i := range 2 {
			permit, at := w.reserve()
			w.answer(permit, at, i)
			if got := w.endpoint("a"); got.Cost != float64(i+1) || got.InFlight != i+1 || got.Successes != 0 {
				t.Fatalf("after %d responses: %+v", i+1, got)
			}
		}
		for i, end := range ends {
			end()
			if got := w.endpoint("a"); got.Cost != float64(1-i) || got.InFlight != 1-i || got.Successes != uint64(i+1) {
				t.Fatalf("after the end of %d: %+v", i+1, got)
			}
		}
	})
	bubble(t, "a removed endpoint lives until its streams have ended", func(t *testing.T) {
		var end func()
		closed := false
		w := newWorld(t, balance.Config{}, belfry.Semantics[int, int]{Until: func(res int, done func()) int {
			end = done
			return res
		}})
		w.backend("a").Allow(1)
		w.services["a"] = closing{w.services["a"], func() error { closed = true; return nil }}
		w.add("a", "b")
		w.do("a", 1)
		w.remove("a")
		w.wantStates("a:draining b:not ready")
		if closed {
			t.Fatal("closed under an open stream")
		}
		end()
		w.wantStates("b:not ready")
		if !closed {
			t.Fatal("not closed after the last stream")
		}
	})
	bubble(t, "D6 a failed call is over like any other, also where responses are streamed", func(t *testing.T) {
		w := newWorld(t, balance.Config{Load: load.Pending{}}, belfry.Semantics[int, int]{Until: func(res int, done func()) int { return res }})
		w.backend("a").Allow(1)
		w.add("a")
		permit, _ := w.reserve()
		done := w.call(permit, 1)
		w.backend("a").Expect(1).Fail(errLost)
		wantEnd(t, done, errLost)
		if got := w.endpoint("a"); got.Cost != 0 || got.InFlight != 0 || got.Failures != 1 {
			t.Errorf("after a failure: %+v", got)
		}
	})
	bubble(t, "latency ends when Call returns, and how it ended counts", func(t *testing.T) {
		var end func()
		w := newWorld(t, balance.Config{Load: load.PeakEWMA{Initial: time.Millisecond}}, belfry.Semantics[int, int]{
			Until: func(res int, done func()) int { end = done; return res },
		})
		w.backend("a").Allow(10)
		w.add("a")
		call := func(after time.Duration, handle func(context.Context, int) (int, error)) {
			ctx, cancel := context.WithCancel(t.Context())
			permit, _ := w.reserve()
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = w.Call(ctx, permit, 1)
			}()
			r := w.backend("a").Next()
			time.Sleep(after)
			if handle == nil {
				cancel()
			} else {
				r.Handle(handle)
			}
			<-done
			cancel()
		}
		answer := func(context.Context, int) (int, error) { return 1, nil }
		call(100*time.Millisecond, answer)
		if got := w.endpoint("a").Latency; got != 100*time.Millisecond {
			t.Fatalf("latency %v", got)
		}
		time.Sleep(time.Second) // of the stream
		end()
		if got := w.endpoint("a").Latency; got > 100*time.Millisecond {
			t.Fatalf("latency %v after a long stream", got)
		}
		call(time.Second, func(context.Context, int) (int, error) {
			return 0, &belfry.Rejection{Layer: "below", Err: belfry.ErrNotReady} // nothing was sent
		})
		if got := w.endpoint("a").Latency; got > 100*time.Millisecond {
			t.Fatalf("latency %v after a rejection", got)
		}
		call(time.Second, nil)
		if got := w.endpoint("a").Latency; got != time.Second {
			t.Fatalf("latency %v after a call that was cancelled after 1 s", got)
		}
		got := w.endpoint("a")
		if got.Successes != 1 || got.Ignored != 2 || got.Failures != 0 {
			t.Fatalf("counts %+v", got)
		}
		before := got.Cost
		call(0, func(context.Context, int) (int, error) { return 0, errLost })
		if got := w.endpoint("a"); got.Cost < before*1.5 || got.Failures != 1 || !errors.Is(got.Failure, errLost) {
			t.Fatalf("after a failure: %+v, cost before %v", got, before)
		}
	})
	bubble(t, "a rejection that the protocol calls a failure is one", func(t *testing.T) {
		w := newWorld(t, balance.Config{}, belfry.Semantics[int, int]{Classify: func(_ int, err error) belfry.Outcome {
			if err != nil {
				return belfry.Outcome{Kind: belfry.Failure}
			}
			return belfry.Outcome{}
		}})
		w.backend("a").Allow(1)
		w.add("a")
		permit, _ := w.reserve()
		done := w.call(permit, 1)
		before := w.endpoint("a").Cost
		w.backend("a").Expect(1).Fail(&belfry.Rejection{Layer: "dial", Err: errLost})
		wantEnd(t, done, belfry.ErrRejected)
		if got := w.endpoint("a"); got.Failures != 1 || got.Cost < 5*before {
			t.Errorf("after a failed dial: %+v, cost before %v", got, before)
		}
	})
}

func TestPermits(t *testing.T) {
	bubble(t, "a call that panics or ends its goroutine is over", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.backend("a").Allow(2)
		w.add("a")
		for i, end := range []func(context.Context, int) (int, error){
			func(context.Context, int) (int, error) { panic("planned") },
			func(context.Context, int) (int, error) { exit(); return 0, nil },
		} {
			permit, _ := w.reserve()
			done := make(chan any, 1)
			go func() {
				defer func() { done <- recover() }()
				_, _ = w.Call(t.Context(), permit, i)
			}()
			w.backend("a").Expect(i).Handle(end)
			if got := <-done; (got == nil) != (i == 1) {
				t.Errorf("recovered %v", got)
			}
			if got := w.endpoint("a"); got.InFlight != 0 || got.Reserved != 0 || got.Failures != uint64(i+1) {
				t.Errorf("%+v", got)
			}
		}
	})
	bubble(t, "a Classify that panics does not keep the call", func(t *testing.T) {
		w := newWorld(t, balance.Config{}, belfry.Semantics[int, int]{Classify: func(int, error) belfry.Outcome { panic("planned") }})
		w.backend("a").Allow(1)
		w.add("a")
		permit, _ := w.reserve()
		go func() { w.backend("a").Expect(1).Answer(1) }()
		func() {
			defer func() { _ = recover() }()
			_, _ = w.Call(t.Context(), permit, 1)
		}()
		if got := w.endpoint("a"); got.InFlight != 0 || got.Failures != 1 {
			t.Errorf("%+v", got)
		}
	})
	bubble(t, "a foreign permit panics", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		w.Release(belfry.Permit{})
	})
	bubble(t, "permits of either kind find their way", func(t *testing.T) {
		w := &world{}
		w.dial = func(_ context.Context, key, _ string) (service, error) {
			if key == "a" {
				return echo(), nil
			}
			return remembering{echo()}, nil
		}
		newWorldOf(t, w, balance.Config{Load: load.Constant(nil)})
		w.add("a", "b")
		for i := range 50 {
			permit, err := w.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 {
				w.Release(permit)
			} else if res, err := w.Call(t.Context(), permit, i); res != i || err != nil {
				t.Fatalf("%d, %v", res, err)
			}
		}
		for _, addr := range []string{"a", "b"} {
			if got := w.endpoint(addr); got.InFlight != 0 || got.Reserved != 0 || got.Successes == 0 {
				t.Errorf("%+v", got)
			}
		}
	})
}

// TestConcurrent is the answer to D63: there is no state per handle.
func TestConcurrent(t *testing.T) {
	t.Run("D63 one balancer, many goroutines", func(t *testing.T) {
		b := ready(t, 5, balance.Config{}, echo)
		var callers sync.WaitGroup
		const goroutines, calls = 16, 300
		for g := range goroutines {
			callers.Go(func() {
				for i := range calls {
					n := g*calls + i
					if res, err := belfry.Do(t.Context(), b, n); res != n || err != nil {
						t.Errorf("%d: %d, %v", n, res, err)
					}
				}
			})
		}
		callers.Wait()
		total := uint64(0)
		for _, ep := range b.Stats().Endpoints {
			total += ep.Successes
			if ep.InFlight != 0 || ep.Reserved != 0 {
				t.Errorf("left over: %+v", ep)
			}
		}
		if total != goroutines*calls {
			t.Errorf("%d successes are counted, want %d", total, goroutines*calls)
		}
	})
}
