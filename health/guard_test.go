package health_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/health"
)

func TestGuardRail(t *testing.T) {
	echo := belfry.Of(func(_ context.Context, req int) (int, error) { return req, nil })
	ill := func(context.Context) error { return errIll }
	cfg := health.Config{Interval: time.Second, FastInterval: time.Second, Unhealthy: 1, Healthy: 1}
	probed := func(t *testing.T, g *eject.Guard, p *patient, cfg health.Config) *health.Service[int, int] {
		t.Helper()
		cfg.Guard = g.New()
		cfg.Guard.Join()
		s := health.New(echo, p.probe, cfg)
		t.Cleanup(func() { s.Close() })
		return s
	}
	lets := func(t *testing.T, s *health.Service[int, int]) bool {
		t.Helper()
		_, err := belfry.TryDo(t.Context(), s, 1)
		return err == nil
	}

	bubble(t, "the last one stays in, and goes out as soon as it may", func(t *testing.T) {
		g, first, second := eject.New(eject.Config{}), newPatient(), newPatient()
		a := probed(t, g, first, cfg)
		first.becomes(ill)
		after(2 * time.Second)
		if s := a.Stats(); s.Healthy || s.Spared == 0 || !lets(t, a) {
			t.Errorf("the only one: %+v, lets calls through: %v", s, lets(t, a))
		}
		b := probed(t, g, second, cfg)
		after(2 * time.Second)
		if lets(t, a) || !lets(t, b) {
			t.Error("the ill one is not out although there is another")
		}
		first.becomes(nil)
		after(2 * time.Second)
		if !lets(t, a) || !g.Quiet() {
			t.Error("it is well, and out")
		}
	})
	bubble(t, "who has nobody else to ask is let through, unless it is closed", func(t *testing.T) {
		g, p := eject.New(eject.Config{Keep: -1}), newPatient()
		p.becomes(ill)
		s := probed(t, g, p, cfg)
		after(2 * time.Second)
		anyway := eject.Panic(t.Context())
		if _, err := belfry.Do(anyway, s, 1); lets(t, s) || err != nil {
			t.Errorf("got %v", err)
		}
		s.Close()
		if _, err := s.Acquire(anyway); !errors.Is(err, belfry.ErrClosed) {
			t.Errorf("got %v, want %v", err, belfry.ErrClosed)
		}
	})
	bubble(t, "one that was never well was never in", func(t *testing.T) {
		g, p := eject.New(eject.Config{}), newPatient()
		p.becomes(ill)
		start := cfg
		start.StartUnhealthy = true
		s := probed(t, g, p, start)
		after(2 * time.Second)
		if lets(t, s) || g.Quiet() {
			t.Error("it is in")
		}
		p.becomes(nil)
		after(2 * time.Second)
		if !lets(t, s) || !g.Quiet() {
			t.Error("it is out")
		}
	})
}
