package pick_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/belfry-go/belfry/internal/pick"
)

// With a share u out, u^(2k) of the picks miss.
func TestPanicLaw(t *testing.T) {
	const n, picks = 1000, 200_000
	set := equal(n)
	for effort := 1; effort <= 5; effort++ {
		for tenth := 0; tenth <= 10; tenth++ {
			source := rand.NewPCG(uint64(effort), uint64(tenth))
			limit, missed := n*tenth/10, 0
			for range picks {
				first, second, m := pick.BetterIn(0, source, set, nil, func(i int) bool { return i < limit }, effort)
				if m {
					missed++
				}
				if m != (first == pick.None) || first != pick.None && first < limit || second != pick.None && second < limit {
					t.Fatalf("effort %d, %d tenths out: drew %d and %d, missed %v", effort, tenth, first, second, m)
				}
			}
			want := math.Pow(float64(tenth)/10, float64(2*effort))
			allowed := math.Min(0.01, want/100+5*math.Sqrt(want*(1-want)/picks)) // a hundredth of little is less
			if got := float64(missed) / picks; math.Abs(got-want) > allowed {
				t.Errorf("effort %d, %d tenths out: %.4f of the picks miss, want %.4f", effort, tenth, got, want)
			}
		}
	}
}

// Being in comes before cost, and where both are in cost decides.
func TestBetterInPrefersWhatIsIn(t *testing.T) {
	set := endpoints(constant(1), constant(2), constant(3))
	source := rand.NewPCG(1, 2)
	for range 1000 {
		first, second, missed := pick.BetterIn(0, source, set, nil, func(i int) bool { return i == 0 }, 1)
		if missed || first == 0 || second == 0 || second == 1 {
			t.Fatalf("drew %d and %d, missed %v", first, second, missed)
		}
	}
	for n, want := range []int{pick.None, 0} {
		first, second, missed := pick.BetterIn(0, source, set[:n], nil, func(int) bool { return false }, 4)
		if first != want || second != pick.None || missed {
			t.Errorf("of %d: drew %d and %d, missed %v", n, first, second, missed)
		}
	}
}
