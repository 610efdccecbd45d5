package belfry_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/limit"
)

type (
	result  = belfry.Result[string, string]
	backend = belfrytest.Backend[string, string]
)

// from yields what comes out of c, until that is closed or ctx ends.
func from(ctx context.Context, c <-chan string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			select {
			case s, ok := <-c:
				if !ok || !yield(s) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// A loop ranges over results in a goroutine.
type loop struct {
	mu   sync.Mutex
	got  []string
	over bool
}

func ranging(results iter.Seq[result]) *loop {
	l := new(loop)
	go func() {
		for r := range results {
			l.note(r)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.over = true
	}()
	return l
}

func (l *loop) note(r result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := r.Req + "=" + r.Res
	if r.Err != nil {
		text = r.Req + "!" + r.Err.Error()
	}
	l.got = append(l.got, text)
}

// want compares all that has come when the bubble is idle, and whether the loop has ended.
func (l *loop) want(t *testing.T, over bool, want ...string) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.got, want) || l.over != over {
		t.Errorf("got %q, over: %v; want %q, over: %v", l.got, l.over, want, over)
	}
}

func same(_ context.Context, req string) (string, error) { return req, nil }

// inBubble runs f in a bubble, over a backend that answers when it is told to.
func inBubble(t *testing.T, f func(t *testing.T, b *backend, svc belfry.Service[string, string])) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b, svc := belfrytest.NewBackend[string, string](t)
		f(t, b, svc)
	})
}

func TestCallAll(t *testing.T) {
	t.Run("U9 one permit, one call, in the order of the inputs", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *backend, svc belfry.Service[string, string]) {
			in := make(chan string, 10)
			l := ranging(belfry.CallAll(t.Context(), svc, from(t.Context(), in), 10))
			l.want(t, false)
			in <- "one"
			l.want(t, false)
			b.Allow(1)
			b.Expect("one").Answer("1")
			l.want(t, false, "one=1")
			b.Allow(1)
			in <- "two"
			in <- "three"
			b.Expect("two").Answer("2")
			l.want(t, false, "one=1", "two=2")
			b.Allow(1)
			b.Expect("three").Answer("3")
			b.Allow(1)
			l.want(t, false, "one=1", "two=2", "three=3")
			if b.Free() != 1 {
				t.Error("a permit is held while there is no input")
			}
			in <- "four"
			b.Expect("four").Answer("4")
			close(in)
			l.want(t, true, "one=1", "two=2", "three=3", "four=4")
		})
	})

	t.Run("U9 U10 calls run at the same time, results come in the order of inputs or of answers", func(t *testing.T) {
		for _, ordered := range []bool{true, false} {
			inBubble(t, func(t *testing.T, b *backend, svc belfry.Service[string, string]) {
				b.Allow(2)
				all := belfry.CallAllAsCompleted[string, string]
				if ordered {
					all = belfry.CallAll
				}
				l := ranging(all(t.Context(), svc, slices.Values([]string{"one", "two"}), 10))
				l.want(t, false)
				one, two := b.Next(), b.Next()
				if one.Req == "two" { // either may be first
					one, two = two, one
				}
				two.Answer("2")
				if ordered {
					l.want(t, false)
				} else {
					l.want(t, false, "two=2")
				}
				one.Answer("1")
				if ordered {
					l.want(t, true, "one=1", "two=2")
				} else {
					l.want(t, true, "two=2", "one=1")
				}
			})
		}
	})

	t.Run("U11 an answer comes out while the input has nothing to give", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *backend, svc belfry.Service[string, string]) {
			b.Allow(1)
			ctx, cancel := context.WithCancel(t.Context())
			in := make(chan string)
			l := ranging(belfry.CallAll(ctx, svc, from(ctx, in), 1))
			l.want(t, false)
			in <- "req"
			l.want(t, false)
			b.Expect("req").Answer("res")
			l.want(t, false, "req=res")
			cancel()
			l.want(t, true, "req=res")
		})
	})

	t.Run("U12 X20 D60 a refusal comes in its place, with the input that was taken, and no other is taken", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *backend, svc belfry.Service[string, string]) {
			b.Allow(1)
			var taken []string
			inputs := func(yield func(string) bool) {
				for _, req := range []string{"req0", "req1", "req2"} {
					taken = append(taken, req)
					if !yield(req) {
						return
					}
				}
			}
			var last error
			l := ranging(func(yield func(result) bool) {
				for r := range belfry.CallAll(t.Context(), svc, inputs, 10) {
					last = r.Err
					yield(r)
				}
			})
			synctest.Wait()
			b.FailAcquire(errBoom)
			l.want(t, false) // not ahead of res0
			b.Expect("req0").Answer("res0")
			l.want(t, true, "req0=res0", "req1!acquire: refused: boom")
			if !errors.Is(last, errBoom) || !errors.Is(last, belfry.ErrRejected) {
				t.Errorf("got %v", last)
			}
			if !slices.Equal(taken, []string{"req0", "req1"}) {
				t.Errorf("took %q", taken)
			}
			b.ExpectNone()
		})
	})

	t.Run("D60 as completed, a refusal comes at once, and then what was in flight", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *backend, svc belfry.Service[string, string]) {
			b.Allow(1)
			l := ranging(belfry.CallAllAsCompleted(t.Context(), svc, slices.Values([]string{"a", "b", "c"}), 10))
			synctest.Wait()
			b.FailAcquire(errBoom)
			l.want(t, false, "b!acquire: refused: boom")
			b.Expect("a").Answer("1")
			l.want(t, true, "b!acquire: refused: boom", "a=1")
		})
	})

	t.Run("U13 while its input is idle it holds no seat and no place", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *backend, svc belfry.Service[string, string]) {
			b.Allow(1)
			room := buffer.New(limit.NewConcurrency(svc, limit.NewLimiter(1)), 1, buffer.Config{})
			ctx, cancel := context.WithCancel(t.Context())
			l := ranging(belfry.CallAll(ctx, belfry.Service[string, string](room), from(ctx, nil), 1))
			l.want(t, false)
			ended := make(chan error, 1)
			go func() {
				_, err := belfry.Do(t.Context(), room, "other")
				ended <- err
			}()
			b.Expect("other").Answer("")
			if err := <-ended; err != nil {
				t.Error(err)
			}
			cancel()
			l.want(t, true)
		})
	})

	t.Run("DX6 first letters arrive in order", func(t *testing.T) {
		first := belfry.Of(func(_ context.Context, s string) (string, error) { return s[:1], nil })
		var got []string
		for r := range belfry.CallAll(t.Context(), first, slices.Values([]string{"one", "two", "three"}), 2) {
			got = append(got, r.Res)
		}
		if strings.Join(got, "") != "ott" {
			t.Errorf("got %q", got)
		}
	})

	t.Run("a failed call has its place, and things go on", func(t *testing.T) {
		svc := belfry.Of(func(_ context.Context, s string) (string, error) {
			if s == "b" {
				return "", errBoom
			}
			return s, nil
		})
		var got []string
		for r := range belfry.CallAll(t.Context(), svc, slices.Values([]string{"a", "b", "c"}), 3) {
			got = append(got, fmt.Sprint(r.Req, r.Res, r.Err))
			if errors.Is(r.Err, belfry.ErrRejected) {
				t.Errorf("%v: was sent", r)
			}
		}
		if want := []string{"aa<nil>", "bboom", "cc<nil>"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})

	t.Run("there has to be room for one", func(t *testing.T) {
		defer func() {
			if err, _ := recover().(error); err == nil || err.Error() != "belfry: max in flight must be at least 1, got 0" {
				t.Errorf("got %v", err)
			}
		}()
		belfry.CallAll(t.Context(), belfry.Of(same), slices.Values([]string{}), 0)
	})
}

func TestCallAllBound(t *testing.T) {
	t.Run("D60 no more inputs are taken than may be in flight, however slow the loop or the first call", func(t *testing.T) {
		for _, ordered := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				const most = 3
				var taken, yielded, running atomic.Int64
				var peaks [most + 1]atomic.Bool // seen: so many at a time
				inputs := func(yield func(int) bool) {
					for i := range 100 {
						if n := taken.Add(1) - yielded.Load(); n > most+1 { // one is on its way into the loop
							t.Errorf("%d taken and not yielded", n)
						}
						if !yield(i) {
							return
						}
					}
				}
				svc := belfry.Of(func(_ context.Context, i int) (int, error) {
					peaks[running.Add(1)].Store(true) // an index out of range if they are too many
					defer running.Add(-1)
					time.Sleep(time.Millisecond)
					if i%10 == 0 {
						time.Sleep(time.Second)
					}
					return i, nil
				})
				all := belfry.CallAllAsCompleted[int, int]
				if ordered {
					all = belfry.CallAll
				}
				next := 0
				for r := range all(t.Context(), svc, inputs, most) {
					yielded.Add(1)
					if r.Err != nil || r.Res != r.Req || ordered && r.Req != next {
						t.Errorf("got %+v, want %d", r, next)
					}
					next++
					if r.Req%7 == 0 {
						time.Sleep(3 * time.Second)
					}
				}
				if next != 100 || !peaks[most].Load() {
					t.Errorf("%d results, %d at a time: %v", next, most, peaks[most].Load())
				}
			})
		}
	})
}

// A stream is a response that has to be ended.
type stream struct {
	ctx   context.Context
	ended atomic.Int32
	done  []func() // of each layer
}

func (s *stream) end() {
	s.ended.Add(1)
	for _, done := range s.done {
		done()
	}
}

// streams returns a service of streams, what they mean, and all there have been.
func streams() (belfry.Service[int, *stream], belfry.Semantics[int, *stream], *sync.Map) {
	var all sync.Map
	svc := belfry.Of(func(ctx context.Context, i int) (*stream, error) {
		s := &stream{ctx: ctx}
		all.Store(i, s)
		time.Sleep(time.Duration(i) * time.Second)
		return s, nil // does not notice that its context has ended
	})
	return svc, belfry.Semantics[int, *stream]{
		Until:   func(s *stream, done func()) *stream { s.done = append(s.done, done); return s },
		Discard: (*stream).end,
	}, &all
}

func TestCallAllLeft(t *testing.T) {
	for _, ordered := range []bool{true, false} {
		all := belfry.CallAllAsCompleted[int, *stream]
		if ordered {
			all = belfry.CallAll
		}
		name := fmt.Sprintf("ordered: %v: ", ordered)

		t.Run(name+"what nobody will read is discarded once, and waited for", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, sem, made := streams()
				l := limit.NewLimiter(4)
				svc = limit.NewConcurrency(svc, l, sem)
				begin := time.Now()
				var first *stream
				for r := range all(t.Context(), svc, slices.Values([]int{1, 2, 3, 4, 5, 6}), 4, sem) {
					first = r.Res
					time.Sleep(time.Second) // the second is there, and waits
					break
				}
				if took := time.Since(begin); took != 5*time.Second && took != 4*time.Second {
					t.Errorf("left after %v: the calls were not waited for", took)
				}
				n := 0
				made.Range(func(_, v any) bool {
					n++
					s := v.(*stream)
					if want := int32(1); s != first && s.ended.Load() != want {
						t.Errorf("ended %d times, want %d", s.ended.Load(), want)
					}
					if s != first && s.ctx.Err() == nil {
						t.Error("its context goes on")
					}
					return true
				})
				if first.ended.Load() != 0 || first.ctx.Err() != nil {
					t.Errorf("the response that was yielded has ended: %v", first.ctx.Err())
				}
				if s := l.Stats(); s.InFlight != 1 || s.Reserved+s.Waiting != 0 || n < 4 || n > 5 {
					t.Errorf("of %d: %+v", n, s)
				}
				first.end()
				if first.ctx.Err() == nil || l.Stats().InFlight != 0 {
					t.Error("its context outlives it")
				}
			})
		})

		t.Run(name+"a response lives until it has ended, also after the loop", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, sem, _ := streams()
				var kept []*stream
				for r := range all(t.Context(), svc, slices.Values([]int{1, 2, 3}), 2, sem) {
					kept = append(kept, r.Res)
				}
				for _, s := range kept {
					if s.ctx.Err() != nil {
						t.Error("ended with the loop")
					}
					s.end()
					if s.ctx.Err() == nil {
						t.Error("its context outlives it")
					}
				}
			})
		})
	}

	t.Run("an input that waits for room is not sent, and its wait ends", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *backend, svc belfry.Service[string, string]) {
			b.Allow(1)
			go func() { b.Expect("a").Answer("1") }()
			for r := range belfry.CallAll(t.Context(), svc, slices.Values([]string{"a", "b"}), 2) {
				synctest.Wait()
				if r.Req != "a" || b.Waiting() != 1 {
					t.Errorf("got %+v, %d waiting", r, b.Waiting())
				}
				break
			}
			if b.Waiting() != 0 {
				t.Error("still waits")
			}
		})
	})

	t.Run("an input is never used after the loop", func(t *testing.T) {
		for range 100 {
			s := []string{"a", "b", "c", "d"}
			for range belfry.CallAllAsCompleted(t.Context(), belfry.Of(same), slices.Values(s), 2) {
				break
			}
			s[1] = "mine again" // which the race detector would notice
		}
	})

	t.Run("a context that ends gives back what is not sent, and leaves the rest", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *backend, svc belfry.Service[string, string]) {
			b.Allow(1)
			ctx, cancel := context.WithCancel(t.Context())
			in := make(chan string, 3)
			in <- "a"
			in <- "b"
			in <- "c"
			l := ranging(belfry.CallAll(ctx, svc, from(ctx, in), 10))
			b.Next()
			synctest.Wait()
			cancel()
			l.want(t, true, "a!context canceled", "b!belfrytest: no grant: context canceled")
			if len(in) != 1 {
				t.Errorf("%d left, want 1", len(in))
			}
			b.ExpectNone()
		})
	})

	t.Run("under a context that is done nothing is taken", func(t *testing.T) {
		inputs := func(func(string) bool) { t.Error("asked") }
		for r := range belfry.CallAll(belfry.NoWait(t.Context()), belfry.Of(same), inputs, 1) {
			t.Errorf("got %+v", r)
		}
	})
}

func TestCallAllRandom(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		n, most, places := random.IntN(30), 1+random.IntN(6), 1+random.IntN(6)
		leaveAt, failAt, cancelAt := random.IntN(40), random.IntN(60), random.IntN(60)
		ordered := random.IntN(2) == 0
		pauses := random.Uint64()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l := limit.NewLimiter(places)
			svc := limit.NewConcurrency(belfry.Of(func(_ context.Context, i int) (int, error) {
				time.Sleep(time.Duration(pauses>>(i%60)&7) * time.Millisecond)
				if i == failAt {
					return 0, errBoom
				}
				return i, nil
			}), l)
			all := belfry.CallAllAsCompleted[int, int]
			if ordered {
				all = belfry.CallAll
			}
			inputs := func(yield func(int) bool) {
				for i := range n {
					if i == cancelAt {
						cancel()
					}
					if !yield(i) {
						return
					}
				}
			}
			seen := map[int]bool{}
			for r := range all(ctx, belfry.Service[int, int](svc), inputs, most) {
				sent := r.Err == nil || r.Req == failAt && errors.Is(r.Err, errBoom)
				if seen[r.Req] || ordered && r.Req != len(seen) || sent == errors.Is(r.Err, belfry.ErrRejected) || r.Err == nil && r.Res != r.Req {
					t.Errorf("seed %d: after %d results: %+v", seed, len(seen), r)
				}
				seen[r.Req] = true
				if r.Req == leaveAt {
					break
				}
			}
			if s := l.Stats(); s.InFlight+s.Reserved+s.Waiting != 0 {
				t.Errorf("seed %d: left behind: %+v", seed, s)
			}
			if cancelAt >= n && leaveAt >= n && len(seen) != n {
				t.Errorf("seed %d: %d of %d results", seed, len(seen), n)
			}
		})
	}
}
