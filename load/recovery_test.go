package load_test

import (
	"fmt"
	"testing"

	"github.com/belfry-go/belfry/load"
)

// TestSimulateRecovery: one endpoint is ill for a while. When it is well again, it gets at least half an equal share of a second's
// requests within 15 s, however ill it was and for however long.
func TestSimulateRecovery(t *testing.T) {
	const rate, well, fairWithin = 150, 3_000, 15
	ills := []struct {
		name  string
		took  int64 // in µs
		class load.Class
	}{
		{"20 times as slow", 90_000, load.Success},
		{"100 times as slow", 300_000, load.Success},
		{"failing at once", 300, load.Failure},
		{"failing after 1 s", 1_000_000, load.Failure},
		{"failing after 5 s", 5_000_000, load.Failure},
		{"cancelled after 5 s", 5_000_000, load.Cancelled},
	}
	for _, ill := range ills {
		for _, servers := range []int{2, 3, 10} {
			for _, from := range []int64{2, 60} { // seconds of illness
				s := simulation{metric: load.Expected{}, servers: servers, rate: rate, seconds: float64(from) + 62}
				s.serve = func(i int, now int64) (int64, load.Class) {
					if i == 0 && now >= 1_000_000 && now < (1+from)*1_000_000 {
						return ill.took, ill.class
					}
					return int64((1 + s.rand.ExpFloat64()) * well), load.Success
				}
				s.run()
				what := fmt.Sprintf("seconds until an endpoint of %d that was %s for %d s has its share", servers, ill.name, from)
				between(t, what, s.fairAfter((1+from)*1_000_000), 0, fairWithin)
			}
		}
	}
}

// fairAfter returns how many seconds after a time the odd endpoint has half of an equal share of a second's requests, and of the ten
// seconds after that. It looks at tenths of a second.
func (s *simulation) fairAfter(from int64) float64 {
	const tenth, most = 100_000, 500
	var all, own [most + 100 + 1]int // of what was sent until the end of each tenth
	for _, r := range s.requests {
		if i := (r.at-from)/tenth + 1; r.at >= from && i < int64(len(all)) {
			all[i]++
			if odd(r) {
				own[i]++
			}
		}
	}
	for i := 1; i < len(all); i++ {
		all[i] += all[i-1]
		own[i] += own[i-1]
	}
	fair := func(i, j int) bool { return 2*(own[j]-own[i])*s.servers >= all[j]-all[i] }
	for i := 10; i < most; i++ {
		if fair(i-10, i) && fair(i, i+100) {
			return float64(i) / 10
		}
	}
	return most / 10
}
