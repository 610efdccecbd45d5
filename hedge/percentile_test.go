package hedge_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/hedge"
)

// lognormal is a service whose latencies have a median of 10 ms and the given spread.
func lognormal(r *rand.Rand, sigma float64) belfry.Service[string, string] {
	return belfry.Of(func(ctx context.Context, _ string) (string, error) {
		return answers(time.Duration(float64(10*ms)*math.Exp(sigma*r.NormFloat64())), "")(ctx)
	})
}

func TestPercentile(t *testing.T) {
	for name, percentile := range map[string]float64{
		"D45 the 90th percentile hedges 10 %, not 16 %": 0.9,
		"D45 the 95th percentile hedges 5 %, not 9 %":   0.95,
	} {
		bubble(t, name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			svc := hedge.New(lognormal(rand.New(&locked{source: rand.NewPCG(seed, 1)}), 1),
				hedge.Config{Percentile: percentile, Period: time.Minute, Budget: budget.Unlimited()})
			for svc.Stats().Calls < 10_000 { // many periods, so that what drifts has drifted
				_, _ = belfry.Do(t.Context(), svc, "")
			}
			before := svc.Stats()
			for range 10_000 {
				_, _ = belfry.Do(t.Context(), svc, "")
			}
			share := float64(svc.Stats().Hedges-before.Hedges) / 10_000
			if want := 1 - percentile; math.Abs(share-want) > 0.2*want {
				t.Errorf("%.2f %% were hedged, want %.0f %% give or take a fifth", 100*share, 100*want)
			}
		})
	}

	learn := func(t *testing.T, svc *hedge.Service[string, string], n int) time.Duration {
		t.Helper()
		for range n {
			_, _ = belfry.Do(t.Context(), svc, "")
		}
		elapse(10 * time.Second)
		return svc.Stats().Delay
	}
	cfg := hedge.Config{Percentile: 0.9, MinSamples: 20, Period: 10 * time.Second, Budget: budget.Unlimited()}

	bubble(t, "D47 nothing is hedged until a period had enough samples", func(t *testing.T) {
		svc := hedge.New(attempts(answers(10*ms, "")), cfg)
		if d := learn(t, svc, 19); d != 0 {
			t.Errorf("delay %v after 19 samples", d)
		}
		if d := learn(t, svc, 20); d < 9*ms || d > 11*ms {
			t.Errorf("delay %v after 20 samples of 10ms", d)
		}
		if d := learn(t, svc, 0); d != 0 {
			t.Errorf("delay %v after an idle period", d)
		}
		if s := svc.Stats(); s.Hedges != 0 {
			t.Errorf("%+v", s)
		}
	})
	bubble(t, "the last full period decides, not the current one", func(t *testing.T) {
		took := 10 * ms
		svc := hedge.New(belfry.Of(func(ctx context.Context, _ string) (string, error) { return answers(took, "")(ctx) }), cfg)
		was := learn(t, svc, 100)
		took = ms
		for range 100 {
			_, _ = belfry.Do(t.Context(), svc, "")
		}
		if d := svc.Stats().Delay; d != was {
			t.Errorf("delay %v within the period, was %v", d, was)
		}
		elapse(10 * time.Second)
		if d := svc.Stats().Delay; d > 2*ms {
			t.Errorf("delay %v in the period after", d)
		}
	})
	bubble(t, "D45 fast failures do not make it shorter", func(t *testing.T) {
		n := 0
		svc := hedge.New(belfry.Of(func(ctx context.Context, _ string) (string, error) {
			if n++; n%2 == 0 {
				return "", errBoom
			}
			return answers(10*ms, "")(ctx)
		}), cfg)
		if d := learn(t, svc, 100); d < 9*ms {
			t.Errorf("delay %v with successes of 10ms", d)
		}
	})
	bubble(t, "refusals say nothing", func(t *testing.T) {
		svc := hedge.New[string, string](&faulty[string]{call: func(context.Context, int) (string, error) {
			return "", &belfry.Rejection{Layer: "inside", Err: belfry.ErrNotReady}
		}}, hedge.Config{MinSamples: 1, Period: 10 * time.Second})
		if d := learn(t, svc, 100); d != 0 {
			t.Errorf("delay %v", d)
		}
	})
	bubble(t, "calls that take no time are not hedged", func(t *testing.T) {
		svc := hedge.New(attempts(answers(0, "")), cfg)
		if d := learn(t, svc, 100); d != 0 {
			t.Errorf("delay %v", d)
		}
		svc = hedge.New(belfry.Of(func(context.Context, string) (string, error) { return "", nil }), cfg)
		learn(t, svc, 100)
		_, _ = belfry.Do(t.Context(), svc, "")
		synctest.Wait()
		if s := svc.Stats(); s.Hedges != 0 || s.Delay != 0 {
			t.Errorf("%+v", s)
		}
	})
}
