package eject_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/eject"
)

var (
	epoch = time.Unix(1_700_000_000, 0)
	later = epoch.Add(time.Minute)
)

func at(d time.Duration) time.Time { return epoch.Add(d) }

// fleet returns a guard with n endpoints.
func fleet(n int) (*eject.Guard, []*eject.Endpoint) {
	g := eject.New(eject.Config{})
	all := make([]*eject.Endpoint, n)
	for i := range all {
		all[i] = g.New()
		all[i].Join()
	}
	return g, all
}

func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		cfg     eject.Config
		n, want int
	}{
		{eject.Config{}, 0, 0},
		{eject.Config{}, 1, 0}, // never the last
		{eject.Config{}, 2, 1}, // one always may be
		{eject.Config{}, 19, 1},
		{eject.Config{}, 20, 2},
		{eject.Config{}, 100, 10},
		{eject.Config{MaxShare: 0.07}, 100, 7},
		{eject.Config{MaxShare: 0.29}, 100, 29},
		{eject.Config{MaxShare: 1}, 5, 4},
		{eject.Config{MaxShare: 1, Keep: 3}, 5, 2},
		{eject.Config{MaxShare: 1, Keep: 9}, 5, 0},
		{eject.Config{MaxShare: 1, Keep: -1}, 5, 5},
		{eject.Config{Keep: -1}, 1, 1},
	} {
		if got := c.cfg.Allowed(c.n); got != c.want {
			t.Errorf("%+v of %d: %d may be out, want %d", c.cfg, c.n, got, c.want)
		}
	}
}

func TestConfigIsRefused(t *testing.T) {
	for _, share := range []float64{-0.1, 1.1, math.NaN()} {
		if err := (eject.Config{MaxShare: share}).Validate(); err == nil {
			t.Errorf("a share of %v is accepted", share)
		}
	}
}

func TestGuardRefusesTooMany(t *testing.T) {
	g, all := fleet(20)
	for i, e := range all {
		if got, want := e.Eject(epoch, eject.Breaker, later), i < 2; got != want {
			t.Errorf("endpoint %d: ejected %v, want %v", i, got, want)
		}
	}
	s := g.Stats(epoch)
	if s.Out != 2 || s.Allowed != 2 || s.Endpoints != 20 || s.Ejected[eject.Breaker] != 2 || s.Refused[eject.Breaker] != 18 {
		t.Errorf("got %+v", s)
	}
	all[0].Restore(eject.Breaker)
	if all[0].Grade(epoch) != eject.In || !all[5].Eject(epoch, eject.Health, later) {
		t.Error("one that came back has made no room")
	}
}

func TestReasonsCountOnce(t *testing.T) {
	g, all := fleet(3)
	for why := range eject.Whys {
		if !all[0].Eject(epoch, why, later) {
			t.Errorf("%v: refused, and it is out already", why)
		}
	}
	for why := range eject.Whys {
		if got := len(all[0].Reasons(epoch)); got != int(eject.Whys-why) {
			t.Errorf("before %v: %d reasons", why, got)
		}
		if g.Quiet() {
			t.Errorf("before %v: it is in", why)
		}
		all[0].Restore(why)
	}
	if !g.Quiet() || all[0].Grade(epoch) != eject.In {
		t.Error("it is out without a reason")
	}
}

// What time ends makes room by itself, and what it does not is probed.
func TestTimeEndsSome(t *testing.T) {
	for why, want := range map[eject.Why]eject.Grade{
		eject.Breaker: eject.Probing, eject.Health: eject.Probing, eject.Outlier: eject.In, eject.Overload: eject.In,
	} {
		g, all := fleet(2)
		all[0].Eject(epoch, why, at(time.Second))
		if got := all[0].Until(at(300 * time.Millisecond)); got != 700*time.Millisecond {
			t.Errorf("%v: %v are left", why, got)
		}
		if all[0].Grade(at(time.Second-1)) != eject.Out || !g.Any(at(time.Second-1)) {
			t.Errorf("%v: in too early", why)
		}
		still := g.Any(at(time.Second))
		if got := all[0].Grade(at(time.Second)); got != want || still != (want == eject.Probing) {
			t.Errorf("%v: graded %v, any out: %v", why, got, still)
		}
		if got := all[1].Eject(at(time.Second), eject.Breaker, later); got != (want == eject.In) {
			t.Errorf("%v: another may be out: %v", why, got)
		}
	}
}

func TestMembersComeAndGo(t *testing.T) {
	g, all := fleet(2)
	all[0].Eject(epoch, eject.Breaker, later)
	all[0].Leave()
	all[0].Leave()
	if s := g.Stats(epoch); s.Endpoints != 1 || s.Out != 0 {
		t.Errorf("after it has left: %+v", s)
	}
	if all[1].Eject(epoch, eject.Breaker, later) {
		t.Error("the last one was ejected")
	}
	all[0].Join()
	all[0].Join()
	if s := g.Stats(epoch); s.Endpoints != 2 || s.Out != 1 {
		t.Errorf("after it is back: %+v", s)
	}
	fresh := g.New()
	if !fresh.Eject(epoch, eject.Health, later) {
		t.Error("what has not joined is nobody's loss")
	}
	all[1].Force(epoch, eject.Breaker, later)
	if all[1].Grade(epoch) != eject.Out {
		t.Error("force asks")
	}
}

func TestWithoutAGuard(t *testing.T) {
	var e *eject.Endpoint
	e.Join()
	e.Leave()
	e.Restore(eject.Health)
	if !e.Eject(epoch, eject.Breaker, later) || e.Grade(epoch) != eject.In || e.Until(epoch) != 0 || e.Reasons(epoch) != nil {
		t.Error("a nil endpoint is guarded")
	}
	if eject.From(context.Background()) != nil || eject.InPanic(context.Background()) {
		t.Error("an empty context says something")
	}
	g := eject.New(eject.Config{})
	one := g.New()
	if eject.From(eject.With(context.Background(), one)) != one || !eject.InPanic(eject.Panic(context.Background())) {
		t.Error("a context forgets")
	}
}

// A time that is as good as never is not taken for one long past.
func TestFarTimes(t *testing.T) {
	_, all := fleet(2)
	all[0].Eject(epoch, eject.Health, time.UnixMicro(math.MaxInt64/4))
	if got := all[0].Grade(later); got != eject.Out {
		t.Errorf("graded %v", got)
	}
}

// However many ask at once, no more than allowed are out.
func TestNeverTooMany(t *testing.T) {
	g, all := fleet(50)
	var wg sync.WaitGroup
	for i, e := range all {
		wg.Go(func() {
			for j := range 200 {
				now := at(time.Duration(j) * time.Millisecond)
				why := eject.Why((i + j) % int(eject.Whys))
				e.Eject(now, why, now.Add(5*time.Millisecond))
				if s := g.Stats(now); s.Out > s.Allowed {
					t.Errorf("%d are out of %d", s.Out, s.Endpoints)
				}
				e.Restore(why)
			}
		})
	}
	wg.Wait()
	if s := g.Stats(later); s.Out != 0 {
		t.Errorf("%d are left out", s.Out)
	}
}

func BenchmarkQuiet(b *testing.B) {
	g, _ := fleet(100)
	b.ReportAllocs()
	for b.Loop() {
		if !g.Quiet() {
			b.Fatal("who is out?")
		}
	}
}

// At most a tenth is out, one always may be, and the last one never is.
func ExampleGuard() {
	g := eject.New(eject.Config{})
	a, b := g.New(), g.New()
	a.Join()
	b.Join()
	now := time.Now()
	fmt.Println(a.Eject(now, eject.Breaker, now.Add(time.Second)), b.Eject(now, eject.Health, now.Add(time.Second)))
	fmt.Println(g.Stats(now).Refused[eject.Health])
	// Output:
	// true false
	// 1
}
