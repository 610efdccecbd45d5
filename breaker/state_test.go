package breaker

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
)

const second = time.Second

var (
	good    = belfry.Outcome{}
	bad     = belfry.Outcome{Kind: belfry.Failure}
	nothing = belfry.Outcome{Kind: belfry.Ignored}
)

func after(retryAfter time.Duration) belfry.Outcome {
	return belfry.Outcome{Kind: belfry.Failure, RetryAfter: retryAfter}
}

func fresh(cfg Config) state {
	cfg = cfg.withDefaults()
	return begin(&cfg)
}

// TestWindow adds calls and looks at moments around the edges of steps, a second wide.
func TestWindow(t *testing.T) {
	const hair = time.Nanosecond
	type call struct {
		at     time.Duration
		failed bool
	}
	for _, c := range []struct {
		name            string
		calls           []call
		look            time.Duration
		total, failures int
	}{
		{"empty", nil, 0, 0, 0},
		{"at once", []call{{0, true}}, 0, 1, 1},
		{"a success", []call{{0, false}}, 0, 1, 0},
		{"until the tenth step after its own begins", []call{{0, true}}, 10*second - hair, 1, 1},
		{"and not at all then", []call{{0, true}}, 10 * second, 0, 0},
		{"from the end of a step it is as long as from its beginning", []call{{second - hair, true}}, 10*second - hair, 1, 1},
		{"not a hair longer", []call{{second - hair, true}}, 10 * second, 0, 0},
		{"a hair later is the next step", []call{{second, true}}, 11*second - hair, 1, 1},
		{"which ends a step later", []call{{second, true}}, 11 * second, 0, 0},
		{"one goes, the other stays", []call{{second - hair, true}, {second, false}}, 10 * second, 1, 0},
		{"one of each step", []call{{0, true}, {second, true}, {2 * second, false}, {9 * second, true}}, 9 * second, 4, 3},
		{"the same place in the ring, ten steps later", []call{{0, true}, {10 * second, false}}, 10 * second, 1, 0},
		{"a hundred steps later", []call{{0, true}, {5 * second, true}, {100 * second, false}}, 100 * second, 1, 0},
		{"a pause of nine steps", []call{{0, true}, {9 * second, true}}, 9 * second, 2, 2},
		{"a pause of eleven steps", []call{{0, true}, {11 * second, true}}, 11 * second, 1, 1},
		{"read before, and noted after, a step began", []call{{second, true}, {second - hair, true}}, 11*second - hair, 2, 2},
		{"a year later", []call{{0, true}}, 365 * 24 * time.Hour, 0, 0},
	} {
		w := window{step: second}
		for _, call := range c.calls {
			w.add(call.at, call.failed)
		}
		w.advance(c.look)
		if w.calls != c.total || w.failures != c.failures {
			t.Errorf("%s: %d calls and %d failures, want %d and %d", c.name, w.calls, w.failures, c.total, c.failures)
		}
	}
}

// TestWindowRandomly compares the window with a list of all calls.
func TestWindowRandomly(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 100 {
		w := window{step: time.Duration(1 + r.IntN(1000))}
		type call struct {
			step   int64
			failed bool
		}
		var all []call
		now := time.Duration(0)
		for range 300 {
			if r.IntN(2) == 0 {
				now += time.Duration(r.Int64N(int64(w.step) * int64([]int{1, 3, 15}[r.IntN(3)])))
			}
			failed := r.IntN(2) == 0
			w.add(now, failed)
			all = append(all, call{int64(now / w.step), failed})
			calls, failures := 0, 0
			for _, c := range all {
				if int64(now/w.step)-c.step < steps {
					calls++
					if c.failed {
						failures++
					}
				}
			}
			if w.calls != calls || w.failures != failures {
				t.Fatalf("step %v, at %v: %d calls and %d failures, want %d and %d", w.step, now, w.calls, w.failures, calls, failures)
			}
		}
	}
}

// TestOpening runs calls a tenth of a second apart: + for a success, - for a failure, 0 for one that is ignored, and an empty
// second for a space. It says after which call the breaker opens, counted from 1 and without spaces; 0 for none.
func TestOpening(t *testing.T) {
	for _, c := range []struct {
		cfg   Config
		calls string
		want  int
	}{
		{Config{}, "-----", 5},
		{Config{}, "----+----+----+", 0},
		{Config{}, "--0--0-", 7},
		{Config{}, "+++++++++++-+-+-+-+-+-+-", 0},
		{Config{Consecutive: 1}, "++0-", 4},
		{Config{Consecutive: 2}, "-+-+--", 6},
		{Config{Ratio: 0.5}, strings.Repeat("-", 19) + "-", 20}, // and not five in a row
		{Config{Ratio: 0.5, MinCalls: 4}, "+-+-", 4},
		{Config{Ratio: 0.5, MinCalls: 4}, "-+--", 4},
		{Config{Ratio: 0.5, MinCalls: 4}, "--+-", 4},
		{Config{Ratio: 0.5, MinCalls: 4}, "---+", 0}, // it is looked at when a call fails
		{Config{Ratio: 0.5, MinCalls: 4}, "---+-", 5},
		{Config{Ratio: 0.5, MinCalls: 4}, "++++---", 0},
		{Config{Ratio: 0.5, MinCalls: 4}, "++++----", 8},
		{Config{Ratio: 0.5, MinCalls: 4}, "+00-0-00-", 9},
		{Config{Ratio: 1, MinCalls: 3}, "---", 3},
		{Config{Ratio: 1, MinCalls: 3}, "+--------", 0},
		{Config{Ratio: 1, MinCalls: 3}, "+         ---", 0}, // the success is nine steps old
		{Config{Ratio: 1, MinCalls: 3}, "+          ---", 4},
		{Config{Ratio: 0.1, MinCalls: 1}, strings.Repeat("+", 27) + "---", 30}, // 0.1 × 30 is more than 3 in binary
		{Config{Ratio: 0.3, MinCalls: 10}, "+++++++---", 10},
		{Config{Ratio: 0.5, MinCalls: 100, Consecutive: 3}, "+---", 4},
		{Config{Ratio: 0.5, MinCalls: 4, Consecutive: 3}, "+-+-", 4},
		{Config{Ratio: 0.5, MinCalls: 4, Window: 100 * time.Millisecond}, "------------", 0}, // one call a window
	} {
		s := fresh(c.cfg)
		now, n, got := time.Duration(0), 0, 0
		for _, call := range c.calls {
			if call == ' ' {
				now += second
				continue
			}
			n++
			s.ended(now, map[rune]belfry.Outcome{'+': good, '-': bad, '0': nothing}[call], 0)
			if got == 0 && s.now == Open {
				got = n
				break
			}
			now += second / 10
		}
		if got != c.want {
			t.Errorf("%+v, %q: opened after call %d, want %d", c.cfg, c.calls, got, c.want)
		}
	}
}

// TestPauses fails as many probes as there are pauses; each pause begins when the one before ends.
func TestPauses(t *testing.T) {
	ones := func(n int) []belfry.Outcome {
		all := make([]belfry.Outcome, n)
		for i := range all {
			all[i] = bad
		}
		return all
	}
	for _, c := range []struct {
		name string
		cfg  Config
		u    float64
		outs []belfry.Outcome // the first opens it, the others are of probes
		want string
	}{
		{"they double up to a minute", Config{}, 0, ones(9), "1s 2s 4s 8s 16s 32s 1m0s 1m0s 1m0s"},
		{"chance takes away up to a half", Config{}, 0.5, ones(4), "750ms 1.5s 3s 6s"},
		{"or what it is told", Config{Jitter: 1}, 0.75, ones(3), "250ms 500ms 1s"},
		{"within bounds of one's own", Config{MinBackoff: 2 * second, MaxBackoff: 5 * second}, 0, ones(4), "2s 4s 5s 5s"},
		{"a long one alone is the longest too", Config{MinBackoff: time.Hour}, 0, ones(2), "1h0m0s 1h0m0s"},
		{"as long as is asked for", Config{}, 0, []belfry.Outcome{after(30 * second), after(10 * second)}, "30s 10s"},
		{"not for less than the back-off", Config{}, 0, []belfry.Outcome{after(second / 2), after(second)}, "1s 2s"},
		{"up to five minutes", Config{}, 0, []belfry.Outcome{after(time.Hour), bad, after(5*time.Minute + 1)}, "5m0s 2s 5m0s"},
		{"or what is allowed", Config{MaxRetryAfter: 3 * second}, 0, []belfry.Outcome{after(time.Hour), after(3 * second), after(4 * second)}, "3s 3s 4s"},
	} {
		c.cfg.Consecutive = 1
		s := fresh(c.cfg)
		var now time.Duration
		var got []string
		for i, out := range c.outs {
			if i == 0 {
				s.ended(now, out, c.u)
			} else {
				s.probed(now, s.take(now), out, c.u)
			}
			if s.now != Open || s.free(s.until-1) || !s.free(s.until) {
				t.Fatalf("%s: after %d it is %+v", c.name, i, s)
			}
			got = append(got, (s.until - now).String())
			now = s.until
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: paused for %s, want %s", c.name, text, c.want)
		}
	}
}

func TestRetryAfterOfEarlierFailures(t *testing.T) {
	for _, c := range []struct {
		name string
		outs []belfry.Outcome // a second apart
		want time.Duration    // the time of the probe
	}{
		{"the latest moment counts, whoever asked for it", []belfry.Outcome{after(60 * second), after(2 * second), bad}, 60 * second},
		{"each is counted from its own answer", []belfry.Outcome{after(5 * second), after(4500 * time.Millisecond), bad}, 5500 * time.Millisecond},
		{"a success ends it", []belfry.Outcome{after(60 * second), good, bad, bad, bad}, 5 * second},
	} {
		s := fresh(Config{Consecutive: 3})
		for i, out := range c.outs {
			s.ended(time.Duration(i)*second, out, 0)
		}
		if s.now != Open || s.until != c.want {
			t.Errorf("%s: it is %v, and a probe goes at %v, want %v", c.name, s.now, s.until, c.want)
		}
	}
}

func TestProbes(t *testing.T) {
	opened := func() state {
		s := fresh(Config{Consecutive: 1})
		s.ended(0, bad, 0)
		return s
	}
	t.Run("one at a time, when the pause is over", func(t *testing.T) {
		s := opened()
		if s.free(second-1) || !s.free(second) {
			t.Fatalf("%+v", s)
		}
		n := s.take(3 * second)
		if s.now != HalfOpen || s.since != 3*second || !s.out(n) || s.free(3*second) || s.next() != 63*second {
			t.Errorf("%+v", s)
		}
	})
	t.Run("a success closes, and all is forgotten", func(t *testing.T) {
		s := fresh(Config{Ratio: 0.5, MinCalls: 1})
		s.ended(0, bad, 0)
		s.probed(second, s.take(second), bad, 0)
		s.probed(3*second, s.take(3*second), good, 0)
		if s.now != Closed || s.run != 0 || s.recent.calls != 0 || s.failed != 0 || s.since != 3*second {
			t.Errorf("%+v", s)
		}
		s.ended(4*second, bad, 0)
		if s.until != 5*second {
			t.Errorf("the next pause ends at %v, want the first of the back-off", s.until)
		}
	})
	for name, end := range map[string]func(s *state, n uint64){
		"given back": func(s *state, n uint64) { s.returned(n) },
		"ignored":    func(s *state, n uint64) { s.probed(second, n, nothing, 0) },
		"of no kind": func(s *state, n uint64) { s.probed(second, n, belfry.Outcome{Kind: 77}, 0) },
	} {
		t.Run("one that is "+name+" makes way at once", func(t *testing.T) {
			s := opened()
			n := s.take(second)
			end(&s, n)
			if s.now != HalfOpen || s.since != second || !s.free(second) || s.out(n) {
				t.Fatalf("%+v", s)
			}
			second := s.take(second)
			end(&s, n) // once more, of the old one
			if second == n || !s.out(second) {
				t.Errorf("%+v", s)
			}
		})
	}
	t.Run("one of which nothing is heard makes way after a minute, and is not heard any more", func(t *testing.T) {
		s := opened()
		n := s.take(second)
		if s.free(61*second-1) || !s.free(61*second) {
			t.Fatalf("%+v", s)
		}
		next := s.take(61 * second)
		s.probed(62*second, n, good, 0)
		s.probed(62*second, n, bad, 0)
		s.returned(n)
		if s.now != HalfOpen || !s.out(next) || s.failed != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("nor is one after the state has changed", func(t *testing.T) {
		s := opened()
		n := s.take(second)
		s.close(2 * second)
		s.probed(3*second, n, bad, 0)
		if s.now != Closed || s.out(n) {
			t.Errorf("%+v", s)
		}
	})
	t.Run("nobody is out whose number is 0", func(t *testing.T) {
		s := opened()
		if s.out(0) {
			t.Error("nobody is")
		}
	})
}

func TestByHand(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(s *state)
		want State
		next time.Duration
	}{
		{"tripped for long", func(s *state) { s.trip(second, time.Hour, 0) }, Open, time.Hour + second},
		{"tripped for a usual pause", func(s *state) { s.trip(second, 0, 0) }, Open, 2 * second},
		{"tripped for less than nothing", func(s *state) { s.trip(second, -time.Hour, 0) }, Open, 2 * second},
		{"while open, it is prolonged", func(s *state) { s.ended(0, bad, 0); s.trip(second/2, time.Hour, 0) }, Open, time.Hour + second/2},
		{"but not shortened", func(s *state) { s.ended(0, after(time.Minute), 0); s.trip(second, second, 0) }, Open, time.Minute},
		{"while half-open, the probe is not waited for", func(s *state) {
			s.ended(0, bad, 0)
			n := s.take(second)
			s.trip(second, time.Hour, 0)
			s.probed(second, n, good, 0)
		}, Open, time.Hour + second},
		{"reset while open", func(s *state) { s.ended(0, bad, 0); s.close(second / 2) }, Closed, 0},
		{"reset while closed", func(s *state) { s.close(second) }, Closed, 0},
	} {
		s := fresh(Config{Consecutive: 1})
		c.do(&s)
		if s.now != c.want || c.want == Open && s.next() != c.next {
			t.Errorf("%s: %v until %v, want %v until %v", c.name, s.now, s.next(), c.want, c.next)
		}
	}
	s := fresh(Config{})
	for range 4 {
		s.ended(0, bad, 0)
	}
	s.close(second)
	s.ended(second, bad, 0)
	if s.now != Closed || s.since != 0 {
		t.Errorf("a reset while closed forgets the failures: %+v", s)
	}
}

func TestStateString(t *testing.T) {
	if got := fmt.Sprint(Closed, Open, HalfOpen, State(9)); got != "closed open half-open unknown" {
		t.Error(got)
	}
}
