package breaker_test

import (
	"math"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/breaker"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		cfg  breaker.Config
		want string // empty: it is valid
	}{
		{breaker.Config{}, ""},
		{breaker.Config{Consecutive: 1, Ratio: 1, Window: 10 * time.Millisecond, MinCalls: 1, Jitter: 1, ProbeTimeout: time.Millisecond}, ""},
		{breaker.Config{MinBackoff: time.Hour}, ""},
		{breaker.Config{MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond}, ""},
		{breaker.Config{Consecutive: -1}, "breaker: consecutive must be at least 1, or 0 for the default, got -1"},
		{breaker.Config{Ratio: -0.1}, "breaker: ratio must be within 0 and 1, got -0.1"},
		{breaker.Config{Ratio: 1.1}, "breaker: ratio must be within 0 and 1, got 1.1"},
		{breaker.Config{Ratio: math.NaN()}, "breaker: ratio must be within 0 and 1, got NaN"},
		{breaker.Config{Window: 9 * time.Millisecond}, "breaker: window must be at least 10ms, or 0 for the default, got 9ms"},
		{breaker.Config{Window: -1}, "breaker: window must be at least 10ms, or 0 for the default, got -1ns"},
		{breaker.Config{MinCalls: -1}, "breaker: min calls must be at least 1, or 0 for the default, got -1"},
		{breaker.Config{MaxRetryAfter: -1}, "breaker: max retry-after must not be negative, got -1ns"},
		{breaker.Config{ProbeTimeout: 1}, "breaker: probe timeout must be at least 1ms, or 0 for the default, got 1ns"},
		{breaker.Config{MinBackoff: 1}, "breaker: back-off: min must be at least 1ms, got 1ns"},
		{breaker.Config{MinBackoff: -1}, "breaker: back-off: min must be at least 1ms, got -1ns"},
		{breaker.Config{MaxBackoff: time.Millisecond}, "breaker: back-off: max must be at least min (1s), got 1ms"},
		{breaker.Config{Jitter: 1.5}, "breaker: back-off: jitter must be within 0 and 1, got 1.5"},
		{breaker.Config{Jitter: math.NaN()}, "breaker: back-off: jitter must be within 0 and 1, got NaN"},
	} {
		got := ""
		if err := c.cfg.Validate(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: got %q, want %q", c.cfg, got, c.want)
		}
		for name, make := range map[string]func(){
			"New":   func() { breaker.New(belfry.Of(echo), c.cfg) },
			"Layer": func() { breaker.Layer[int, int](c.cfg) },
		} {
			if v := panicOf(make); (v == nil) != (c.want == "") || v != nil && v.(error).Error() != c.want {
				t.Errorf("%s of %+v panics with %v, want %q", name, c.cfg, v, c.want)
			}
		}
	}
}

func panicOf(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}
