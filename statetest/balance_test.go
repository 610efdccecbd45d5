package statetest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
)

// A peer is ready or not, and answers with its address.
type peer struct {
	addr  string
	ready chan struct{} // closed while it is
	dead  bool
}

func (p *peer) Acquire(ctx context.Context) (belfry.Permit, error) {
	select {
	case <-p.ready:
		return belfry.Permit{}, nil
	default:
	}
	select {
	case <-p.ready:
		return belfry.Permit{}, nil
	case <-ctx.Done():
		return belfry.Permit{}, &belfry.Rejection{Layer: "peer", Err: ctx.Err()}
	}
}

func (p *peer) Call(context.Context, belfry.Permit, int) (string, error) {
	if p.dead {
		return "", errBoom
	}
	return p.addr, nil
}

func (p *peer) Release(belfry.Permit) {}
func (p *peer) Close() error          { p.dead = true; return nil }

func (p *peer) becomes(ready bool) {
	p.ready = make(chan struct{})
	if ready {
		close(p.ready)
	}
}

func TestReadySet(t *testing.T) {
	check(t, func(t *rapid.T, ctx context.Context) {
		news := make(chan discover.Change)
		source := func(yield func(discover.Change, error) bool) {
			for {
				select {
				case c := <-news:
					if !yield(c, nil) {
						return
					}
				case <-ctx.Done():
					return
				}
			}
		}
		// The world: every peer that was ever dialled, by address. All of them begin ready.
		peers := map[string]*peer{}
		b, err := balance.New(source, func(_ context.Context, _, addr string) (belfry.Service[int, string], error) {
			p := &peer{addr: addr}
			p.becomes(true)
			peers[addr] = p
			return p, nil
		}, balance.Config{AllowEmpty: true})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()

		// The model: the address of each key. Each is new, so that what serves it is known. held are permits, and whose they must be.
		set, moves := map[string]string{}, 0
		type permit struct {
			belfry.Permit
			of []string
		}
		var held []permit
		ready := func() (addrs []string) {
			for _, addr := range set {
				select {
				case <-peers[addr].ready:
					addrs = append(addrs, addr)
				default:
				}
			}
			slices.Sort(addrs)
			return addrs
		}
		say := func(c discover.Change) {
			news <- c
			synctest.Wait()
		}
		key := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		t.Repeat(map[string]func(*rapid.T){
			"insert or move": func(t *rapid.T) {
				k := key.Draw(t, "key")
				moves++
				set[k] = k + strings.Repeat("+", moves)
				say(discover.Change{Key: k, Addr: set[k]})
			},
			"remove": func(t *rapid.T) {
				k := key.Draw(t, "key")
				delete(set, k)
				say(discover.Remove(k))
			},
			"become ready or not": func(t *rapid.T) {
				_, k := pick(t, slices.Sorted(maps.Keys(set)))
				p := peers[set[k]]
				select {
				case <-p.ready:
					p.becomes(false)
				default:
					close(p.ready)
				}
				synctest.Wait()
			},
			"call": func(t *rapid.T) {
				want := ready()
				got, err := belfry.TryDo(ctx, b, 1)
				synctest.Wait()
				if len(want) == 0 {
					if !errors.Is(err, belfry.ErrRejected) {
						t.Fatalf("got %q, %v, and nobody is ready", got, err)
					}
				} else if err != nil || !slices.Contains(want, got) {
					t.Fatalf("got %q, %v, want one of %q", got, err, want)
				}
			},
			"acquire": func(t *rapid.T) {
				want := ready()
				p, err := b.Acquire(belfry.NoWait(ctx))
				synctest.Wait()
				if (err == nil) != (len(want) > 0) {
					t.Fatalf("got %v, and %q are ready", err, want)
				}
				if err == nil {
					held = append(held, permit{p, want})
				}
			},
			"call with a permit, or release it": func(t *rapid.T) {
				i, p := pick(t, held)
				held = slices.Delete(held, i, i+1)
				if rapid.Bool().Draw(t, "release") {
					b.Release(p.Permit)
					synctest.Wait()
					return
				}
				got, err := b.Call(ctx, p.Permit, 1)
				synctest.Wait()
				if err != nil || !slices.Contains(p.of, got) {
					t.Fatalf("got %q, %v, want one of %q", got, err, p.of)
				}
			},
			"": func(t *rapid.T) {
				for _, addr := range set {
					if peers[addr] == nil || peers[addr].dead {
						t.Fatalf("%s is in the set, and was not dialled, or is closed", addr)
					}
				}
				if len(held) > 0 {
					return // they may keep removed ones open
				}
				for addr, p := range peers {
					if gone(set, addr) && !p.dead {
						t.Fatalf("%s is gone, and was not closed", addr)
					}
				}
			},
		})
		for _, p := range held {
			b.Release(p.Permit)
		}
	})
}

func gone(set map[string]string, addr string) bool {
	return !slices.Contains(slices.Collect(maps.Values(set)), addr)
}
