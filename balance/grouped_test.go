package balance_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/load"
)

// A street is a balancer over services that count their calls, with the test as its source.
type street struct {
	*balancer
	t    *testing.T
	news chan discover.Change

	mu     sync.Mutex
	houses map[string]*house
}

// A house counts the calls of one address.
type house struct {
	calls   atomic.Int64
	refuses atomic.Bool // no room
	fails   atomic.Bool
}

func (h *house) Acquire(ctx context.Context) (belfry.Permit, error) {
	for h.refuses.Load() {
		if err := ctx.Err(); err != nil {
			return belfry.Permit{}, &belfry.Rejection{Layer: "house", Reason: "full", Err: belfry.ErrNotReady}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
	return belfry.Permit{}, nil
}

func (h *house) Call(context.Context, belfry.Permit, int) (int, error) {
	h.calls.Add(1)
	if h.fails.Load() {
		return 0, errors.New("failed")
	}
	return 0, nil
}

func (h *house) Release(belfry.Permit) {}

func newStreet(t *testing.T, cfg balance.Config, endpoints ...discover.Change) *street {
	t.Helper()
	s := &street{t: t, news: make(chan discover.Change), houses: map[string]*house{}}
	if cfg.Load == nil {
		cfg.Load = load.Pending{}
	}
	cfg.Rand = rand.NewPCG(1, 2)
	source := func(yield func(discover.Change, error) bool) {
		for c := range s.news {
			if !yield(c, nil) {
				return
			}
		}
	}
	b, err := balance.New(source, func(_ context.Context, _, addr string) (service, error) {
		return s.at(addr), nil
	}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.balancer = b
	t.Cleanup(func() {
		close(s.news)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	s.say(endpoints...)
	return s
}

func (s *street) at(addr string) *house {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.houses[addr] == nil {
		s.houses[addr] = new(house)
	}
	return s.houses[addr]
}

func (s *street) say(changes ...discover.Change) {
	for _, c := range changes {
		s.news <- c
	}
	synctest.Wait()
}

// calls sends n and returns how many each address got of a thousand.
func (s *street) calls(n int, ctx func() context.Context) map[string]float64 {
	s.t.Helper()
	before := map[string]int64{}
	for addr, h := range s.houses {
		before[addr] = h.calls.Load()
	}
	for range n {
		_, _ = belfry.Do(ctx(), s.balancer, 1)
	}
	got := map[string]float64{}
	for addr, h := range s.houses {
		if more := h.calls.Load() - before[addr]; more > 0 {
			got[addr] = 1000 * float64(more) / float64(n)
		}
	}
	return got
}

// want fails unless calls go in these parts of a thousand, give or take four deviations.
func (s *street) want(what string, parts map[string]float64) {
	s.t.Helper()
	const n = 20_000
	got := s.calls(n, context.Background)
	for addr := range s.houses {
		p := parts[addr] / 1000
		if allowed := 4000 * math.Sqrt(p*(1-p)/n); math.Abs(got[addr]-parts[addr]) > allowed {
			s.t.Errorf("%s: calls go %v, want %v", what, got, parts)
			return
		}
	}
}

func at(addr string, more ...func(*discover.Change)) discover.Change {
	c := discover.Insert(addr)
	for _, f := range more {
		f(&c)
	}
	return c
}

func weighing(n int) func(*discover.Change) { return func(c *discover.Change) { c.Weight = n } }
func in(zone string) func(*discover.Change) { return func(c *discover.Change) { c.Zone = zone } }

func ranking(n int) func(*discover.Change) { return func(c *discover.Change) { c.Priority = n } }

func hosted(host string) func(*discover.Change) { return func(c *discover.Change) { c.Host = host } }

func TestWeights(t *testing.T) {
	bubble(t, "D15 98, 1 and 1", func(t *testing.T) {
		s := newStreet(t, balance.Config{}, at("a", weighing(98)), at("b"), at("c", weighing(1)))
		s.want("at first", map[string]float64{"a": 980, "b": 10, "c": 10})
		s.say(at("a", weighing(2)))
		s.want("after a change", map[string]float64{"a": 500, "b": 250, "c": 250})
		s.at("a").refuses.Store(true)
		s.want("while a has no room", map[string]float64{"b": 500, "c": 500})
		s.at("a").refuses.Store(false)
		s.want("when it has", map[string]float64{"a": 500, "b": 250, "c": 250})
		s.say(discover.Remove("b"))
		s.want("after one is gone", map[string]float64{"a": 1000 * 2. / 3, "c": 1000 / 3.})
		for _, ep := range s.Stats().Endpoints {
			if want := map[string]int{"a": 2, "c": 1}[ep.Key]; ep.Weight != want {
				t.Errorf("%s has weight %d, want %d", ep.Key, ep.Weight, want)
			}
		}
	})
	bubble(t, "a weight stays when the endpoint moves", func(t *testing.T) {
		s := newStreet(t, balance.Config{}, at("a", weighing(3)), at("b"))
		s.say(discover.Change{Key: "a", Addr: "elsewhere", Weight: 9})
		s.want("after the move", map[string]float64{"elsewhere": 900, "b": 100})
	})
}

func TestPriorities(t *testing.T) {
	bubble(t, "failover and back", func(t *testing.T) {
		s := newStreet(t, balance.Config{}, at("a"), at("b"), at("spare", ranking(1)))
		s.want("all ready", map[string]float64{"a": 500, "b": 500})
		s.at("a").refuses.Store(true)
		got := s.calls(20_000, context.Background)
		if share := got["spare"]; got["a"] > 0 || share < 250 || share > 310 { // 0.3 × 31/32
			t.Errorf("with one of two: calls go %v", got)
		}
		s.at("b").refuses.Store(true)
		s.want("with none", map[string]float64{"spare": 1000})
		s.at("a").refuses.Store(false)
		s.at("b").refuses.Store(false)
		s.calls(1000, context.Background) // one in 32 looks
		s.want("when they are back", map[string]float64{"a": 500, "b": 500})
	})
	bubble(t, "an endpoint that cannot be dialled counts as not ready", func(t *testing.T) {
		up := func(_ context.Context, _, addr string) (service, error) {
			if addr == "down" {
				return nil, errors.New("refused")
			}
			return echo(), nil
		}
		source := func(yield func(discover.Change, error) bool) {
			for _, c := range []discover.Change{at("up"), at("down"), at("spare", ranking(1))} {
				if !yield(c, nil) {
					return
				}
			}
		}
		b, err := balance.New(source, up, balance.Config{Load: load.Pending{}, Rand: rand.NewPCG(1, 2)})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		synctest.Wait()
		for range 4000 {
			if _, err := belfry.Do(t.Context(), b, 1); err != nil {
				t.Fatal(err)
			}
		}
		for _, ep := range b.Stats().Endpoints {
			if ep.Key == "spare" && (ep.Successes < 1000 || ep.Successes > 1400) {
				t.Errorf("the spare one got %d of 4000, want about 1160", ep.Successes)
			}
		}
	})
}

func TestZones(t *testing.T) {
	bubble(t, "near ones, until they have no room", func(t *testing.T) {
		s := newStreet(t, balance.Config{Zone: "x"}, at("a", in("x")), at("b", in("x")), at("c", in("y")), at("d"))
		s.want("all ready", map[string]float64{"a": 500, "b": 500})
		s.at("a").refuses.Store(true)
		s.want("one", map[string]float64{"b": 1000})
		s.at("b").refuses.Store(true)
		s.want("none", map[string]float64{"c": 500, "d": 500})
		s.at("a").refuses.Store(false)
		s.want("one again", map[string]float64{"a": 1000})
	})
	bubble(t, "without a zone of one's own, all are alike", func(t *testing.T) {
		s := newStreet(t, balance.Config{}, at("a", in("x")), at("b", in("y")))
		s.want("calls", map[string]float64{"a": 500, "b": 500})
	})
	bubble(t, "an attempt goes to another zone, then to another host", func(t *testing.T) {
		s := newStreet(t, balance.Config{},
			at("a", in("x"), hosted("1")), at("b", in("x"), hosted("2")), at("c", in("x"), hosted("1")), at("d", in("y"), hosted("3")))
		for _, h := range s.houses {
			h.fails.Store(true)
		}
		for range 200 {
			before := map[string]int64{}
			for addr, h := range s.houses {
				before[addr] = h.calls.Load()
			}
			ctx := &attempt.Context{Context: context.Background()}
			var order string
			for range 4 {
				_, _ = belfry.Do(ctx, s.balancer, 1)
				for addr, h := range s.houses {
					if n := h.calls.Load(); n > before[addr] {
						before[addr] = n
						order += addr
					}
				}
			}
			switch order {
			case "adbc", "cdba", "dabc", "dcba", "bdac", "bdca", "dbac", "dbca":
			default:
				t.Fatalf("asked in the order %s", order)
			}
		}
	})
}

func TestZoneFactor(t *testing.T) {
	for _, f := range []float64{0.5, -1, math.NaN(), math.Inf(1)} {
		if err := (balance.Config{ZoneFactor: f}).Validate(); err == nil {
			t.Errorf("%v was accepted", f)
		}
	}
	for _, f := range []float64{0, 1, 2.5} {
		if err := (balance.Config{ZoneFactor: f}).Validate(); err != nil {
			t.Error(err)
		}
	}
}
