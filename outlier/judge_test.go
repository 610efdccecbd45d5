package outlier

import (
	"math"
	"testing"
	"time"
)

func fleetOf(n int, of sample, others ...sample) []sample {
	all := append([]sample(nil), others...)
	for len(all) < n {
		all = append(all, of)
	}
	return all
}

func TestJudge(t *testing.T) {
	well := sample{calls: 1000, latency: 100}
	for _, c := range []struct {
		name  string
		cfg   Config
		fleet []sample // the first is judged
		want  bool
		slow  bool
	}{
		{"one in five fails", Config{}, fleetOf(10, well, sample{calls: 1000, failures: 200, latency: 100}), true, false},
		{"one in twenty fails", Config{}, fleetOf(10, well, sample{calls: 1000, failures: 50, latency: 100}), false, false},
		{"one in twenty fails, and that matters", Config{Gap: 0.03}, fleetOf(10, well, sample{calls: 1000, failures: 50, latency: 100}), true, false},
		{"all fail alike", Config{}, fleetOf(10, sample{calls: 1000, failures: 500}), false, false},
		{"all fail, one does not", Config{}, fleetOf(10, sample{calls: 1000, failures: 900}, sample{calls: 1000}), false, false},
		{"half of them fail", Config{}, append(fleetOf(5, sample{calls: 1000, failures: 900}), fleetOf(5, well)...), false, false},
		{"few calls: chance", Config{MinCalls: 10}, fleetOf(10, sample{calls: 10, failures: 2}, sample{calls: 10, failures: 5}), false, false},
		{"too few calls", Config{}, fleetOf(10, well, sample{calls: 29, failures: 29}), false, false},
		{"too few peers", Config{}, fleetOf(2, well, sample{calls: 100, failures: 100}), false, false},
		{"slow, and nobody looks", Config{}, fleetOf(10, well, sample{calls: 1000, latency: 1000}), false, false},
		{"slow", Config{Latency: 3}, fleetOf(10, well, sample{calls: 1000, latency: 301}), true, true},
		{"not so slow", Config{Latency: 3}, fleetOf(10, well, sample{calls: 1000, latency: 299}), false, false},
		{
			"slow where latencies differ a lot",
			Config{Latency: 1.5},
			[]sample{{calls: 99, latency: 300}, {calls: 99, latency: 50}, {calls: 99, latency: 100}, {calls: 99, latency: 200}, {calls: 99, latency: 150}},
			false, false,
		},
		{"fails, and nobody looks", Config{Latency: 3, IgnoreFailures: true}, fleetOf(10, well, sample{calls: 1000, failures: 900, latency: 100}), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := c.cfg.withDefaults()
			excess, slow := cfg.judge(cfg.normsOf(c.fleet), c.fleet[0])
			if got := excess > 1; got != c.want || slow != c.slow {
				t.Errorf("excess %.2f, slow %v; want an outlier: %v, slow: %v", excess, slow, c.want, c.slow)
			}
		})
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	if d, n := h.take(); d != 0 || n != 0 {
		t.Errorf("empty: %v of %d", d, n)
	}
	for _, d := range []time.Duration{0, time.Microsecond, 777 * time.Microsecond, 50 * time.Millisecond, 3 * time.Hour, 1000 * time.Hour} {
		for range 10 {
			h.add(d)
		}
		got, n := h.take()
		want := float64(min(max(d, time.Microsecond), edgeOf(buckets)))
		if off := math.Abs(float64(got)-want) / want; off > 0.13 || n != 10 {
			t.Errorf("%v: the median is %v of %d", d, got, n)
		}
	}
	for i := range 1001 {
		h.add(time.Duration(1000+i) * time.Microsecond)
	}
	if got, _ := h.take(); got < 1480*time.Microsecond || got > 1520*time.Microsecond {
		t.Errorf("the median of 1 to 2 ms is %v", got)
	}
}

func edgeOf(i int) time.Duration { return time.Duration(edge(i) * float64(time.Microsecond)) }
