package balance_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	breakers "github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/load"
)

// A club has an endpoint for each name, whose calls take as many milliseconds as its place, from 10 on, and fail if the request is 0. One that is full
// refuses.
type club struct {
	*balancer
	full map[string]*atomic.Bool
}

type door struct {
	service
	full *atomic.Bool
}

func (d door) Acquire(ctx context.Context) (belfry.Permit, error) {
	for d.full.Load() {
		if err := ctx.Err(); err != nil {
			return belfry.Permit{}, errFull
		}
		time.Sleep(time.Millisecond)
	}
	return d.service.Acquire(ctx)
}

// A sixth refuses those who ask first, but for the sixth.
type sixth struct {
	service
	asked *atomic.Int64
}

func (s sixth) Acquire(ctx context.Context) (belfry.Permit, error) {
	if n := s.asked.Add(1); n > 0 && n < 6 {
		return belfry.Permit{}, errFull
	}
	return s.service.Acquire(ctx)
}

func newClub(t *testing.T, cfg balance.Config, changes ...discover.Change) *club {
	t.Helper()
	c := &club{full: map[string]*atomic.Bool{}}
	var names []string
	for _, change := range changes {
		c.full[change.Addr] = &atomic.Bool{}
		names = append(names, change.Addr)
	}
	source := func(yield func(discover.Change, error) bool) {
		for _, change := range changes {
			if !yield(change, nil) {
				return
			}
		}
	}
	b, err := balance.New(source, func(_ context.Context, _, addr string) (service, error) {
		took := time.Duration(10+slices.Index(names, addr)) * time.Millisecond
		return door{belfry.Of(func(_ context.Context, req int) (int, error) {
			time.Sleep(took)
			switch req {
			case 0:
				return 0, errors.New("nothing")
			case 13:
				panic("unlucky")
			}
			return req, nil
		}), c.full[addr]}, nil
	}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.balancer = b
	synctest.Wait()
	t.Cleanup(func() { b.Close() })
	return c
}

// do sends a request, and does not mind how it ends.
func (c *club) do(ctx context.Context, req int) {
	defer func() { _ = recover() }()
	_, _ = belfry.Do(ctx, c.balancer, req)
}

// latest returns the newest decision.
func (c *club) latest(t *testing.T) balance.Decision {
	t.Helper()
	all := c.Decisions()
	if len(all) == 0 {
		t.Fatal("there is no decision")
	}
	return all[len(all)-1]
}

func TestDecisions(t *testing.T) {
	ctx := context.Background()
	two := []discover.Change{at("a"), at("b")}
	bubble(t, "say who was drawn, what that cost, who was chosen and how it ended", func(t *testing.T) {
		c := newClub(t, balance.Config{Load: load.Pending{}, Decisions: 10}, two...)
		began := time.Now()
		time.Sleep(time.Second)
		first, err := c.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		d := c.latest(t)
		if d.Number != 1 || d.At.Sub(began) != time.Second || d.Attempt != 1 || d.By != balance.ByDraw || d.Others != 0 || d.Ended != balance.Reserved || d.Took != 0 {
			t.Errorf("of a permit that is out: %+v", d)
		}
		if len(d.Candidates) != 2 || d.Chosen != 0 || d.Candidates[0].Held != 0 || d.Candidates[0].Cost != d.Candidates[1].Cost ||
			d.Candidates[0].Answer != balance.Granted || d.Candidates[1].Answer != balance.NotAsked || d.Candidates[0].Key == d.Candidates[1].Key {
			t.Errorf("between two equals: %+v", d.Candidates)
		}
		busy := d.Candidates[0].Key
		c.do(ctx, 1)
		d = c.latest(t)
		if took := map[string]time.Duration{"a": 11, "b": 10}[busy] * time.Millisecond; d.Ended != balance.Succeeded || d.Took != took {
			t.Errorf("of a call that took %v: %+v", took, d)
		}
		if d.Candidates[0].Key == busy || d.Candidates[1].Key != busy || d.Candidates[1].Held != 1 || d.Candidates[0].Cost >= d.Candidates[1].Cost {
			t.Errorf("while %s is held: %+v", busy, d.Candidates)
		}
		c.Release(first)
		if d = c.Decisions()[0]; d.Ended != balance.Returned {
			t.Errorf("of a permit that was given back: %+v", d)
		}
		c.do(ctx, 0)
		if d = c.latest(t); d.Ended != balance.Failed || d.Took < 10*time.Millisecond {
			t.Errorf("of a call that failed: %+v", d)
		}
		c.do(ctx, 13)
		if d = c.latest(t); d.Ended != balance.Failed || d.Took < 10*time.Millisecond {
			t.Errorf("of a call that panicked: %+v", d)
		}
		go c.do(ctx, 1)
		synctest.Wait()
		if d = c.latest(t); d.Ended != balance.InFlight || d.Took != 0 {
			t.Errorf("of a call in flight: %+v", d)
		}
		time.Sleep(time.Second)
	})
	bubble(t, "are the latest, and no more", func(t *testing.T) {
		c := newClub(t, balance.Config{Decisions: 3}, two...)
		old, err := c.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for range 7 {
			c.do(ctx, 1)
		}
		_, _ = c.Call(ctx, old, 0) // whose decision is not kept any more
		var numbers []uint64
		for _, d := range c.Decisions() {
			numbers = append(numbers, d.Number)
			if d.Ended != balance.Succeeded {
				t.Errorf("decision %d is %v: it has what became of an older one", d.Number, d.Ended)
			}
		}
		if !slices.Equal(numbers, []uint64{6, 7, 8}) {
			t.Errorf("there are %v, want 6, 7 and 8", numbers)
		}
		p, err := c.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if d := c.latest(t); d.Ended != balance.Reserved || d.Took != 0 {
			t.Errorf("of a permit that is out it has what became of an older one: %+v", d)
		}
		c.Release(p)
	})
	bubble(t, "of permits that are out at the same time each get an ending", func(t *testing.T) {
		c := newClub(t, balance.Config{Decisions: 10}, at("a"))
		var permits []belfry.Permit
		for range 3 {
			p, err := c.Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			permits = append(permits, p)
		}
		c.Release(permits[0])
		for i, p := range permits[1:] {
			_, _ = c.Call(ctx, p, i) // the first fails
		}
		var ended []balance.Ending
		for _, d := range c.Decisions() {
			ended = append(ended, d.Ended)
		}
		if want := []balance.Ending{balance.Succeeded, balance.Failed, balance.Returned}; !slices.Equal(ended, want) {
			t.Errorf("they ended %v, want %v: the newest first", ended, want)
		}
	})
	bubble(t, "are not kept unless asked for", func(t *testing.T) {
		c := newClub(t, balance.Config{}, two...)
		c.do(ctx, 1)
		if all := c.Decisions(); all != nil {
			t.Errorf("got %+v", all)
		}
	})
	bubble(t, "name who refused", func(t *testing.T) {
		c := newClub(t, balance.Config{Decisions: 10}, at("a"), at("b"), at("c"), at("d"), at("e"), at("f"))
		for name, full := range c.full {
			full.Store(name != "d")
		}
		for range 50 {
			c.do(ctx, 1)
			d := c.latest(t)
			last := len(d.Candidates) - 1
			if d.Chosen < 0 || d.Candidates[d.Chosen].Key != "d" || d.Candidates[d.Chosen].Answer != balance.Granted {
				t.Fatalf("chose %+v", d)
			}
			for i, candidate := range d.Candidates[:d.Chosen] {
				if candidate.Answer != balance.Refused {
					t.Errorf("candidate %d of %+v did not refuse", i, d)
				}
			}
			if d.Others > 2 || last > 3 || d.Others > 0 && last != 3 {
				t.Errorf("%d others beside %d", d.Others, last+1)
			}
		}
		for _, full := range c.full {
			full.Store(false)
		}
	})
	bubble(t, "count those that refused beside the first three", func(t *testing.T) {
		var asked atomic.Int64
		asked.Store(-6) // those who made them ready
		b, err := balance.New(discover.List("a", "b", "c", "d", "e", "f"), func(context.Context, string, string) (service, error) {
			return sixth{echo(), &asked}, nil
		}, balance.Config{Decisions: 10})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		synctest.Wait()
		if _, err := belfry.Do(ctx, b, 1); err != nil {
			t.Fatal(err)
		}
		d := b.Decisions()[0]
		if len(d.Candidates) != 4 || d.Others != 2 || d.Chosen != 3 || d.Candidates[3].Answer != balance.Granted || d.Candidates[2].Answer != balance.Refused {
			t.Errorf("%+v", d)
		}
	})
	bubble(t, "name who had room first for a caller in line", func(t *testing.T) {
		c := newClub(t, balance.Config{Load: load.Pending{}, Decisions: 10}, two...)
		c.full["a"].Store(true)
		c.full["b"].Store(true)
		time.AfterFunc(time.Second, func() { c.full["b"].Store(false) })
		c.do(ctx, 1)
		d := c.latest(t)
		if len(c.Decisions()) != 1 || d.By != balance.ByWaiting || len(d.Candidates) != 1 || d.Candidates[0].Key != "b" || d.Candidates[0].Held != 0 || d.Ended != balance.Succeeded {
			t.Errorf("%+v", c.Decisions())
		}
		c.full["a"].Store(false)
		c.do(ctx, 1)
		if now := c.latest(t); now.Candidates[0].Cost != d.Candidates[0].Cost {
			t.Errorf("it cost %v with nothing in flight, then %v", d.Candidates[0].Cost, now.Candidates[0].Cost)
		}
	})
	bubble(t, "know attempts", func(t *testing.T) {
		c := newClub(t, balance.Config{Decisions: 10}, two...)
		ctx := &attempt.Context{Context: context.Background()}
		c.do(ctx, 0)
		before := c.latest(t)
		c.do(ctx, 1)
		d := c.latest(t)
		if before.Attempt != 1 || d.Attempt != 2 || d.Candidates[d.Chosen].Key == before.Candidates[before.Chosen].Key {
			t.Errorf("%+v, then %+v", before, d)
		}
	})
	bubble(t, "of weights have the pair", func(t *testing.T) {
		heavy := []discover.Change{at("a"), at("b"), at("c")}
		for i := range heavy[1:] {
			heavy[i+1].Weight = 1000
		}
		c := newClub(t, balance.Config{Decisions: 20}, heavy...)
		pairs := 0
		for range 20 {
			c.do(ctx, 1)
			d := c.latest(t)
			if d.By != balance.ByDraw || d.Candidates[d.Chosen].Answer != balance.Granted {
				t.Errorf("%+v", d)
			}
			if len(d.Candidates) == 2 && d.Candidates[0].Cost <= d.Candidates[1].Cost {
				pairs++
			}
		}
		if pairs < 15 { // a is drawn once in 2001
			t.Errorf("%d of 20 have two candidates, the cheaper first", pairs)
		}
	})
	bubble(t, "by key say so", func(t *testing.T) {
		c := newClub(t, balance.Config{ByKey: true, Decisions: 10}, two...)
		c.do(keyed(1), 1)
		if d := c.latest(t); d.By != balance.ByOrder {
			t.Errorf("%+v", d)
		}
		c.do(ctx, 1)
		if d := c.latest(t); d.By != balance.ByDraw {
			t.Errorf("without a key: %+v", d)
		}
	})
}

// Those that are asked although they are out say so.
func TestDecisionsInPanic(t *testing.T) {
	bubble(t, "all are out", func(t *testing.T) {
		w, all := wardOf(t, 2, balance.Config{Decisions: 10, Eject: eject.Config{MaxShare: 1, Keep: -1}})
		for _, p := range all {
			p.ill.Store(1)
			for p.Stats().State != breakers.Open {
				w.sends(1)
			}
		}
		w.sends(1)
		d := w.Decisions()
		if last := d[len(d)-1]; last.By != balance.ByPanic || last.Ended != balance.Failed {
			t.Errorf("%+v", last)
		}
		if d[0].By != balance.ByDraw {
			t.Errorf("the first, when all were in: %+v", d[0])
		}
	})
}

// What the metric suggests is said to be, and what is drawn before it suggests anything is not.
func TestDecisionsByMetric(t *testing.T) {
	bubble(t, "one that was probed", func(t *testing.T) {
		all := map[string]*talker{"a": newTalker(0), "b": newTalker(50), "c": newTalker(90)}
		b := talk(t, balance.Config{Load: load.Probing{}, Decisions: 1000}, all)
		send(t, b, 600)
		by := map[balance.Means]int{}
		for _, d := range b.Decisions() {
			by[d.By]++
			if d.By == balance.ByMetric && len(d.Candidates) != 1 {
				t.Errorf("%+v", d)
			}
		}
		if by[balance.ByDraw] == 0 || by[balance.ByMetric] < 100 || by[balance.ByDraw]+by[balance.ByMetric] != 600 {
			t.Errorf("they were found %v", by)
		}
	})
}

// Many callers at once: every decision that is kept has ended as the calls of its endpoint do, and is there once.
func TestDecisionsOfManyAtOnce(t *testing.T) {
	const callers, each = 8, 400
	b := ready(t, 5, balance.Config{Decisions: callers * each}, echo)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := range each {
				if i%4 == 0 {
					if p, err := b.Acquire(context.Background()); err == nil {
						b.Release(p)
					}
					continue
				}
				_, _ = belfry.Do(context.Background(), b, i)
			}
		})
	}
	all.Wait()
	ended := map[balance.Ending]int{}
	for i, d := range b.Decisions() {
		ended[d.Ended]++
		if d.Number != uint64(i+1) || len(d.Candidates) == 0 || d.Candidates[d.Chosen].Answer != balance.Granted {
			t.Fatalf("%d: %+v", i, d)
		}
	}
	if ended[balance.Returned] != callers*each/4 || ended[balance.Succeeded] != callers*each*3/4 {
		t.Errorf("they ended %v", ended)
	}
}

func TestDecisionsAreBounded(t *testing.T) {
	for _, n := range []int{-1, 1_000_001} {
		err := balance.Config{Decisions: n}.Validate()
		if err == nil || !strings.Contains(err.Error(), "decisions must be 0 to 1000000, got "+strconv.Itoa(n)) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

func TestDecisionsInWords(t *testing.T) {
	for v, want := range map[any]string{
		balance.ByDraw: "draw", balance.ByMetric: "metric", balance.ByOrder: "key", balance.ByWaiting: "wait", balance.ByPanic: "panic", balance.Means(99): "unknown",
		balance.NotAsked: "not asked", balance.Refused: "refused", balance.Granted: "granted", balance.Answer(99): "unknown",
		balance.Reserved: "reserved", balance.Returned: "returned", balance.InFlight: "in flight", balance.Succeeded: "success", balance.Failed: "failure",
		balance.WasIgnored: "ignored", balance.Ending(99): "unknown",
	} {
		if got := v.(interface{ String() string }).String(); got != want {
			t.Errorf("%T is %q, want %q", v, got, want)
		}
	}
}
