package health

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

var errIll = errors.New("ill")

// TestState runs results, + for a success and - for a failure, and compares the state after each: H is healthy and U
// unhealthy, in lower case while there is doubt.
func TestState(t *testing.T) {
	for _, c := range []struct {
		cfg           Config
		results, want string
	}{
		{Config{}, "++++++", "hhhHHH"},
		{Config{}, "---------+", "hhuuuUUUUu"},
		{Config{}, "++++-+--++---", "hhhHhhhhhhhhu"},
		{Config{}, "---+-++", "hhuuuuh"},
		{Config{}, "---++++-+", "hhuuhhHhh"},
		{Config{Unhealthy: 1, Healthy: 1}, "-+-++", "uhuhH"},
		{Config{Unhealthy: 1, Healthy: 3}, "-++-+++", "uuuuuuh"},
		{Config{StartUnhealthy: true}, "+++++", "hhhHH"},
		{Config{StartUnhealthy: true}, "-------+--", "uuuuuUUhhh"},
		{Config{StartUnhealthy: true}, "+---++", "hhhuuh"},
		{Config{StartUnhealthy: true, Healthy: 5}, "+---+++++", "hhhuuuuuh"},
	} {
		cfg := c.cfg.withDefaults()
		s := begin(time.Time{}, &cfg)
		if s.well == c.cfg.StartUnhealthy || !s.doubt() {
			t.Errorf("%+v: begins as %+v", c.cfg, s)
		}
		var got strings.Builder
		was := s.well
		for i, r := range c.results {
			at := time.Time{}.Add(time.Duration(i+1) * time.Second)
			err := map[rune]error{'-': fmt.Errorf("%d: %w", i, errIll)}[r]
			changed := s.result(at, err)
			if changed != (s.well != was) || changed != s.since.Equal(at) {
				t.Errorf("%+v, %s: result %d says that the change is %v, since %v", c.cfg, c.results, i, changed, s.since)
			}
			was = s.well
			text := "U"
			if s.well {
				text = "H"
			}
			if s.doubt() {
				text = strings.ToLower(text)
			}
			got.WriteString(text)
			if wantErr := strings.Contains(c.results[:i+1], "-") && !(s.well && r == '+'); (s.err != nil) != wantErr {
				t.Errorf("%+v, %s: after result %d the error is %v", c.cfg, c.results, i, s.err)
			}
		}
		if got.String() != c.want {
			t.Errorf("%+v, %s: got %s, want %s", c.cfg, c.results, got.String(), c.want)
		}
		if p, f := uint64(len(c.results)), uint64(strings.Count(c.results, "-")); s.probes != p || s.failures != f {
			t.Errorf("%+v, %s: %d probes and %d failures", c.cfg, c.results, s.probes, s.failures)
		}
	}
}

// TestStateRandomly compares the state with what the definition says, over the whole history.
func TestStateRandomly(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		cfg := Config{Unhealthy: 1 + random.IntN(4), Healthy: 1 + random.IntN(4), StartUnhealthy: random.IntN(2) == 0}
		s := begin(time.Time{}, &cfg)
		well, proven, history := s.well, !cfg.StartUnhealthy, ""
		for range 200 {
			var err error
			if random.IntN(2) == 0 {
				err = errIll
			}
			s.result(time.Time{}, err)
			history += map[bool]string{true: "+", false: "-"}[err == nil]
			switch {
			case well && strings.HasSuffix(history, strings.Repeat("-", cfg.Unhealthy)):
				well = false
			case !well && strings.HasSuffix(history, strings.Repeat("+", cfg.Healthy)), !well && !proven && err == nil:
				well, proven = true, true
			}
			if s.well != well {
				t.Fatalf("%+v: after %s healthy is %v", cfg, history, s.well)
			}
		}
	}
}
