package stack_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/retry"
	"github.com/belfry-go/belfry/stack"
)

var errOut = errors.New("out of order")

// openLoop calls svc at a rate, whatever becomes of earlier calls, and waits for all of them.
func openLoop(svc belfry.Service[int, int], rate int, d time.Duration, done func(at time.Duration, err error)) {
	var calls sync.WaitGroup
	start := time.Now()
	for at := time.Duration(0); at < d; at += time.Second / time.Duration(rate) {
		time.Sleep(time.Until(start.Add(at)))
		calls.Go(func() {
			_, err := belfry.Do(context.Background(), svc, 1)
			done(at, err)
		})
	}
	calls.Wait()
}

// TestOutage: three callers in a row retry, and all that the last one calls fails. After the budget's ttl they cost no more than its
// reserve, each alone and all together, since one who is out of budget says so to the one above.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, fails, ttl, until = 200, 10 * time.Second, 10 * time.Second, 40 * time.Second
		start := time.Now()
		var attempts [4]atomic.Int64 // of each caller from the top, and of the server
		counted := func(i int, next belfry.Service[int, int]) belfry.Service[int, int] {
			return belfry.Of(func(ctx context.Context, n int) (int, error) {
				if at := time.Since(start); at >= fails+ttl {
					attempts[i].Add(1)
				}
				return belfry.Do(ctx, next, n)
			})
		}
		var next belfry.Service[int, int] = belfry.Of(func(context.Context, int) (int, error) {
			time.Sleep(time.Millisecond)
			if time.Since(start) > fails {
				return 0, errOut
			}
			return 1, nil
		})
		next = counted(3, next)
		for i := 2; i >= 0; i-- {
			svc, err := stack.New[int, int]().Retry(retry.Config{MaxAttempts: 3}).Build(next)
			if err != nil {
				t.Fatal(err)
			}
			next = counted(i, svc)
		}
		var failed, ok atomic.Int64
		openLoop(next, rate, until, func(at time.Duration, err error) {
			switch {
			case err == nil && at < fails:
				ok.Add(1)
			case errors.Is(err, errOut):
				failed.Add(1)
			default:
				t.Errorf("at %v: %v", at, err)
			}
		})
		if got, want := ok.Load(), int64(rate*fails/time.Second); got < want-1 || failed.Load() == 0 {
			t.Errorf("%d requests succeeded before the outage, want %d", got, want)
		}
		const most = 1.2 + 10.0/rate // the default reserve is ten a second
		for i := range 3 {
			ratio := float64(attempts[i+1].Load()) / float64(attempts[i].Load())
			t.Logf("caller %d makes %.3f attempts a request", i+1, ratio)
			if ratio > most {
				t.Errorf("caller %d makes %.3f attempts a request, want %.2f at most", i+1, ratio, most)
			}
		}
		if ratio := float64(attempts[3].Load()) / float64(attempts[0].Load()); ratio > most {
			t.Errorf("the server gets %.3f attempts a request, want %.2f at most", ratio, most)
		}
	})
}

// A fleet is servers that are restarted one after another.
type fleet struct {
	news chan discover.Change
	down [5]atomic.Bool
	got  [5]atomic.Int64
}

func (f *fleet) source() iter.Seq2[discover.Change, error] {
	return func(yield func(discover.Change, error) bool) {
		for c := range f.news {
			if !yield(c, nil) {
				return
			}
		}
	}
}

func (f *fleet) dial(_ context.Context, key, _ string) (belfry.Service[int, int], error) {
	var i int
	if _, err := fmt.Sscan(key, &i); err != nil {
		return nil, err
	}
	return belfry.Of(func(context.Context, int) (int, error) {
		f.got[i].Add(1)
		if f.down[i].Load() {
			return 0, errOut
		}
		time.Sleep(20 * time.Millisecond)
		return 1, nil
	}), nil
}

// TestRollingRestart: each of five servers is away for 3 s in turn. If that is announced, no request meets it; if not, a retry on another
// server cures all of them, and one that is back has its share again within 15 s.
func TestRollingRestart(t *testing.T) {
	for _, announced := range []bool{true, false} {
		t.Run(fmt.Sprintf("announced %v", announced), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const rate, away, between = 200, 3 * time.Second, 2 * time.Second
				f := &fleet{news: make(chan discover.Change)}
				b, err := balance.New(f.source(), f.dial, balance.Config{}, belfry.Semantics[int, int]{})
				if err != nil {
					t.Fatal(err)
				}
				svc, err := stack.New[int, int]().LoadShed().Buffer(100).ConcurrencyLimit(100).Timeout(time.Second).Retry(retry.Config{MaxAttempts: 3}).Build(b)
				if err != nil {
					t.Fatal(err)
				}
				for i := range f.down {
					f.news <- discover.Insert(fmt.Sprint(i))
				}
				var met, late [5]int64
				go func() {
					for i := range f.down {
						time.Sleep(between)
						if announced {
							f.news <- discover.Remove(fmt.Sprint(i))
							time.Sleep(100 * time.Millisecond) // what is in flight ends
						}
						met[i] = f.got[i].Load()
						f.down[i].Store(true)
						time.Sleep(away)
						met[i] = f.got[i].Load() - met[i]
						f.down[i].Store(false)
						if announced {
							f.news <- discover.Insert(fmt.Sprint(i))
						}
					}
					time.Sleep(15 * time.Second)
					for i := range late {
						late[i] = f.got[i].Load()
					}
				}()
				openLoop(svc, rate, 45*time.Second, func(at time.Duration, err error) {
					if err != nil {
						t.Errorf("at %v: %v", at, err)
					}
				})
				for i := range late {
					late[i] = f.got[i].Load() - late[i]
					if announced && met[i] != 0 {
						t.Errorf("server %d got %d requests while it was away", i, met[i])
					}
					if !announced && (met[i] == 0 || met[i] > 30) {
						t.Errorf("server %d got %d requests while it was away, want 1 to 30", i, met[i])
					}
					if fair := int64(rate * 5 / len(f.down)); late[i] < fair/2 {
						t.Errorf("server %d got %d of the last requests, want half of %d", i, late[i], fair)
					}
				}
				if err := b.Close(); err != nil {
					t.Error(err)
				}
				close(f.news)
			})
		})
	}
}
