package statetest

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/reconnect"
)

// A link is a connection, which knows whether it was closed.
type link struct {
	number int
	broken bool
	closed bool
}

func (l *link) Acquire(context.Context) (belfry.Permit, error) { return belfry.Permit{}, nil }
func (l *link) Release(belfry.Permit)                          {}
func (l *link) Close() error                                   { l.closed = true; return nil }

func (l *link) Call(_ context.Context, _ belfry.Permit, wait chan struct{}) (int, error) {
	if wait != nil {
		<-wait
	}
	switch {
	case l.closed:
		return 0, errors.New("called when it was closed")
	case l.broken:
		return 0, io.EOF
	}
	return l.number, nil
}

func TestReconnect(t *testing.T) {
	check(t, func(t *rapid.T, ctx context.Context) {
		// The world: whether dials fail, and the connections made. A dial that a timer has started knows nothing of what the test did
		// before, so both take mu: the test after each action.
		var mu sync.Mutex
		down := rapid.Bool().Draw(t, "down")
		var links []*link
		dials := 0
		svc := reconnect.New(func(context.Context) (belfry.Service[chan struct{}, int], error) {
			mu.Lock()
			defer mu.Unlock()
			dials++
			if down {
				return nil, errBoom
			}
			links = append(links, &link{number: len(links)})
			return links[len(links)-1], nil
		}, reconnect.Config{MinBackoff: time.Second, MaxBackoff: 4 * time.Second, Rand: chance(0), Remake: reconnect.Broken})
		defer svc.Close()

		// The model: the number of the present connection, or -1; whether a call of it has ended well; how many attempts have failed in a
		// row, and when the next is due.
		asked, current, proven, failures, due, attempts := false, -1, false, 0, time.Time{}, 0
		made := 0
		calls := map[int][]chan struct{}{} // that wait, by connection
		fails := func(at time.Time) {
			failures++
			due = at.Add(time.Second << min(failures-1, 2))
		}
		dial := func(at time.Time) {
			attempts++
			if down {
				fails(at)
				return
			}
			current, proven = made, false
			made++
		}
		lose := func() {
			current = -1
			if proven {
				failures = 0
				dial(time.Now())
				return
			}
			fails(time.Now())
		}
		t.Repeat(map[string]func(*rapid.T){
			"call": func(t *rapid.T) {
				if !asked {
					asked = true
					dial(time.Now())
				}
				before := current
				broken := before >= 0 && links != nil && before < len(links) && links[before].broken
				got, err := belfry.Do(ctx, svc, nil)
				synctest.Wait()
				switch {
				case before < 0:
					r, _ := errors.AsType[*belfry.Rejection](err)
					if r == nil || r.RetryAfter != time.Until(due) || !errors.Is(err, belfry.ErrNotReady) {
						t.Fatalf("got %v, want a refusal for %v", err, time.Until(due))
					}
				case broken:
					if err != io.EOF {
						t.Fatalf("got %v, %v over a broken connection", got, err)
					}
					lose()
				case got != before || err != nil:
					t.Fatalf("got %v, %v, want connection %d", got, err, before)
				default:
					proven = true
				}
			},
			"a call that lasts": func(t *rapid.T) {
				if current < 0 {
					t.Skip("no connection")
				}
				wait := make(chan struct{})
				go func() { _, _ = belfry.Do(ctx, svc, wait) }()
				synctest.Wait()
				calls[current] = append(calls[current], wait)
			},
			"the oldest call ends": func(t *rapid.T) {
				for number := range made {
					if len(calls[number]) == 0 {
						continue
					}
					close(calls[number][0])
					calls[number] = calls[number][1:]
					synctest.Wait()
					switch {
					case number != current:
					case links[number].broken:
						lose()
					default:
						proven = true
					}
					return
				}
				t.Skip("no call")
			},
			"the connection breaks": func(t *rapid.T) {
				if current < 0 {
					t.Skip("no connection")
				}
				links[current].broken = true
			},
			"the target goes or comes": func(*rapid.T) { down = !down },
			"time passes": func(t *rapid.T) {
				until := time.Now().Add(time.Duration(rapid.IntRange(1, 50).Draw(t, "tenths")) * 100 * time.Millisecond)
				for asked && current < 0 && !due.After(until) {
					dial(due)
				}
				time.Sleep(time.Until(until))
				synctest.Wait()
			},
			"": func(t *rapid.T) {
				mu.Lock()
				defer mu.Unlock()
				if dials != attempts || len(links) != made {
					t.Fatalf("%d dials and %d connections, want %d and %d", dials, len(links), attempts, made)
				}
				want := reconnect.Idle
				switch {
				case current >= 0:
					want = reconnect.Ready
				case asked:
					want = reconnect.BackingOff
				}
				if s := svc.Stats(); s.State != want || want == reconnect.Ready && s.LastError != nil {
					t.Fatalf("got %+v, want %v", s, want)
				}
				for number, l := range links {
					if want := number != current && len(calls[number]) == 0; l.closed != want {
						t.Fatalf("connection %d is closed: %v, want %v (current %d)", number, l.closed, want, current)
					}
				}
			},
		})
		for _, waiting := range calls {
			for _, wait := range waiting {
				close(wait)
			}
		}
		svc.Close()
		synctest.Wait()
		for number, l := range links {
			if !l.closed {
				t.Fatalf("connection %d was left open", number)
			}
		}
	})
}
