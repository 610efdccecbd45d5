package pick_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/internal/pick"
)

// A constant is a load that does not change.
type constant float64

func (c constant) Cost(int64, int) float64 { return float64(c) }

// A counted load is how many hold the endpoint.
type counted struct{}

func (counted) Cost(_ int64, held int) float64 { return float64(held) }

func endpoints(loads ...pick.Load) []*pick.Endpoint {
	set := make([]*pick.Endpoint, len(loads))
	for i, l := range loads {
		set[i] = new(pick.Endpoint)
		set[i].Init(l)
	}
	return set
}

func equal(n int) []*pick.Endpoint {
	loads := make([]pick.Load, n)
	for i := range loads {
		loads[i] = constant(1)
	}
	return endpoints(loads...)
}

// seed is fixed, so that a bound which holds keeps holding.
const seed = 42

func source(t testing.TB) rand.Source {
	t.Logf("seed %d", seed)
	return rand.NewPCG(seed, seed)
}

// chiSquare fails unless counts look like draws with equal chances: the statistic is normal with k and 2k for k degrees of
// freedom, roughly, and four deviations are allowed.
func chiSquare(t *testing.T, what string, counts []int) {
	t.Helper()
	total := 0
	for _, n := range counts {
		total += n
	}
	want := float64(total) / float64(len(counts))
	sum := 0.0
	for _, n := range counts {
		sum += (float64(n) - want) * (float64(n) - want) / want
	}
	free := float64(len(counts) - 1)
	deviation := (sum - free) / math.Sqrt(2*free)
	t.Logf("%s: chi-square %.1f with %v degrees of freedom", what, sum, free)
	if deviation > 4 || deviation < -4 {
		t.Errorf("%s: %v are not equal chances: chi-square %.1f with %v degrees of freedom", what, counts, sum, free)
	}
}

func TestTwo(t *testing.T) {
	t.Run("U3 both below n and different", func(t *testing.T) {
		random := source(t)
		for n := 2; n <= 256; n++ {
			for range 200 {
				first, second := pick.Two(random, n)
				if first < 0 || second < 0 || first >= n || second >= n || first == second {
					t.Fatalf("drew %d and %d below %d", first, second, n)
				}
			}
		}
	})
	t.Run("U4 of two both orders and nothing else", func(t *testing.T) {
		random := source(t)
		seen := map[[2]int]int{}
		for range 1000 {
			first, second := pick.Two(random, 2)
			seen[[2]int{first, second}]++
		}
		if len(seen) != 2 || seen[[2]int{0, 1}] < 400 || seen[[2]int{1, 0}] < 400 {
			t.Fatalf("drew %v", seen)
		}
	})
	t.Run("U3 every ordered pair as likely", func(t *testing.T) {
		random := source(t)
		for _, n := range []int{2, 3, 5, 11} {
			pairs := make([]int, n*n)
			for range 1000 * n * n {
				first, second := pick.Two(random, n)
				pairs[first*n+second]++
			}
			var counts []int
			for i, c := range pairs {
				if i/n != i%n {
					counts = append(counts, c)
				}
			}
			chiSquare(t, fmt.Sprintf("pairs below %d", n), counts)
		}
	})
	t.Run("U3 extreme words", func(t *testing.T) {
		for _, word := range []uint64{0, 1<<64 - 1, 1<<32 - 1, 1<<64 - 1<<32} {
			for _, n := range []int{2, 3, 1 << 20} {
				if first, second := pick.Two(fixed(word), n); first == second || max(first, second) >= n {
					t.Errorf("word %#x, below %d: %d and %d", word, n, first, second)
				}
			}
		}
	})
}

// fixed always draws the same.
type fixed uint64

func (f fixed) Uint64() uint64 { return uint64(f) }

func TestBetter(t *testing.T) {
	t.Run("S18 with constant load every endpoint is as likely", func(t *testing.T) {
		random := source(t)
		for _, n := range []int{2, 3, 10} {
			counts := make([]int, n)
			set := equal(n)
			for range 2000 * n {
				first, _ := pick.Better(0, random, set, nil)
				counts[first]++
			}
			chiSquare(t, fmt.Sprintf("%d endpoints", n), counts)
		}
	})
	t.Run("S2 loads of 0, 1 and 10 get two thirds, one third and nothing", func(t *testing.T) {
		random := source(t)
		counts := make([]int, 3)
		set := endpoints(constant(0), constant(1), constant(10))
		for range 9000 {
			first, _ := pick.Better(0, random, set, nil)
			counts[first]++
		}
		if counts[0] < 5800 || counts[0] > 6200 || counts[2] != 0 {
			t.Fatalf("9000 picks went %v, want about 6000, 3000 and 0", counts)
		}
	})
	t.Run("returns both, the better first", func(t *testing.T) {
		random := source(t)
		set := endpoints(constant(1), constant(2))
		for range 20 {
			if first, second := pick.Better(0, random, set, nil); first != 0 || second != 1 {
				t.Fatalf("%d, then %d", first, second)
			}
		}
	})
	t.Run("has no choice among none and one", func(t *testing.T) {
		if first, second := pick.Better(0, source(t), nil, nil); first != pick.None || second != pick.None {
			t.Errorf("of none: %d, then %d", first, second)
		}
		set := equal(1)
		tried := new(attempt.Set)
		tried.Add(set[0])
		for _, tried := range []*attempt.Set{nil, tried} {
			if first, second := pick.Better(0, source(t), set, tried); first != 0 || second != pick.None {
				t.Errorf("of one: %d, then %d", first, second)
			}
		}
	})
	t.Run("asks at the time it is given", func(t *testing.T) {
		set := endpoints(clock{}, constant(5))
		for now, want := range map[int64]int{4: 0, 6: 1} {
			if first, _ := pick.Better(now, source(t), set, nil); first != want {
				t.Errorf("at %d picked %d, want %d", now, first, want)
			}
		}
	})
}

// A clock costs what time it is.
type clock struct{}

func (clock) Cost(now int64, _ int) float64 { return float64(now) }

func TestTried(t *testing.T) {
	random := source(t)
	set := equal(4)
	tried := new(attempt.Set)
	for n, want := range [][]int{{0, 1, 2, 3}, {1, 2, 3}, {2, 3}, {3}} {
		counts := make([]int, len(set))
		for range 3000 {
			counts[first(random, set, tried)]++
		}
		for i, c := range counts {
			if (c > 0) != slices.Contains(want, i) {
				t.Errorf("with %d tried: picks %v, want all of %v", n, counts, want)
				break
			}
		}
		if n < len(set)-1 {
			tried.Add(set[n])
		}
	}
	t.Run("still the better of two where both are new", func(t *testing.T) {
		set := endpoints(constant(0), constant(1), constant(2), constant(3), constant(4))
		tried := new(attempt.Set)
		tried.Add(set[0])
		last := 0
		for range 1000 {
			if first(random, set, tried) == 4 {
				last++
			}
		}
		if last > 60 { // only where all draws had the tried one
			t.Errorf("the worst was picked %d times of 1000", last)
		}
	})
	t.Run("asked last when all others have refused", func(t *testing.T) {
		for i := range 100 {
			for j, ep := range set {
				ep.Hint(i%2 == 0 && j < 3) // even if they seem to have room
			}
			order := order(random, set, tried)
			if len(order) != 4 || order[0] != 3 || !slices.Equal(sorted(order), []int{0, 1, 2, 3}) {
				t.Fatalf("asked in the order %v", order)
			}
		}
	})
}

// first is the first endpoint to ask.
func first(random rand.Source, set []*pick.Endpoint, tried *attempt.Set) int {
	return order(random, set, tried)[0]
}

// order is the order in which all are asked.
func order(random rand.Source, set []*pick.Endpoint, tried *attempt.Set) (asked []int) {
	first, second := pick.Better(0, random, set, tried)
	for _, i := range []int{first, second} {
		if i != pick.None {
			asked = append(asked, i)
		}
	}
	rest := pick.NewRest(0, random, set, first, second, tried)
	for i := rest.Next(); i != pick.None; i = rest.Next() {
		asked = append(asked, i)
		set[i].Hint(false)
	}
	return asked
}

func sorted(s []int) []int {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

func TestRest(t *testing.T) {
	t.Run("asks every other endpoint once", func(t *testing.T) {
		random := source(t)
		for _, n := range []int{0, 1, 2, 3, 63, 64, 65, 1023, 1024, 1025, 3000} {
			set := equal(n)
			for i := range n {
				set[i].Hint(i%3 == 0)
			}
			all := make([]int, n)
			for i := range all {
				all[i] = i
			}
			if got := sorted(order(random, set, nil)); !slices.Equal(got, all) {
				t.Errorf("of %d endpoints, %d were asked", n, len(got))
			}
		}
	})
	t.Run("asks those with a hint first", func(t *testing.T) {
		random := source(t)
		set := equal(100)
		for range 50 {
			hinted := map[int]bool{}
			for i := range set {
				hinted[i] = i%7 == 0
				set[i].Hint(hinted[i])
			}
			order := order(random, set, nil)[2:]
			for i := 1; i < len(order); i++ {
				if hinted[order[i]] && !hinted[order[i-1]] {
					t.Fatalf("%d has a hint and was asked after %d, which has none", order[i], order[i-1])
				}
			}
		}
	})
	t.Run("misses none whose hint changes meanwhile", func(t *testing.T) {
		random := source(t)
		set := equal(50)
		for range 50 {
			for i := range set {
				set[i].Hint(false)
			}
			rest := pick.NewRest(0, random, set, pick.None, pick.None, nil)
			asked := map[int]int{}
			for i := rest.Next(); i != pick.None; i = rest.Next() {
				asked[i]++
				for _, ep := range set {
					ep.Hint(random.Uint64()%2 == 0)
				}
			}
			for i := range set {
				if asked[i] != 1 {
					t.Fatalf("%d was asked %d times", i, asked[i])
				}
			}
		}
	})
	t.Run("begins anywhere", func(t *testing.T) {
		random := source(t)
		set := equal(10)
		counts := make([]int, 10)
		for range 10_000 {
			rest := pick.NewRest(0, random, set, pick.None, pick.None, nil)
			counts[rest.Next()]++
		}
		chiSquare(t, "the first of the rest", counts)
	})
}

// TestBallsInBins throws as many balls as there are bins, each into the emptiest of d: the better of two is what this
// package picks, the others are drawn here.
func TestBallsInBins(t *testing.T) {
	largest := func(random rand.Source, n, d int) int {
		set := make([]*pick.Endpoint, n)
		for i := range set {
			set[i] = new(pick.Endpoint)
			set[i].Init(counted{})
		}
		most := 0
		for range n {
			into := drawn(random, set, d)
			set[into].Hold()
			holders, _ := set[into].Held()
			most = max(most, holders)
		}
		return most
	}
	t.Run("S1 means of the largest of 100 bins", func(t *testing.T) {
		random := source(t)
		for d, bounds := range map[int][2]float64{1: {4.1, 4.35}, 2: {2.5, 2.7}} {
			sum := 0
			const runs = 1500
			for range runs {
				sum += largest(random, 100, d)
			}
			if mean := float64(sum) / runs; mean < bounds[0] || mean > bounds[1] {
				t.Errorf("d = %d: mean %.3f, want %v", d, mean, bounds)
			}
		}
	})
	t.Run("S20 the largest of 2^12 bins", func(t *testing.T) {
		random := source(t)
		for d, want := range map[int][]int{1: {5, 6, 7, 8, 9}, 2: {3, 4}, 3: {2, 3}, 4: {2, 3}} {
			for range 20 {
				if got := largest(random, 1<<12, d); !slices.Contains(want, got) {
					t.Errorf("d = %d: %d balls in one bin, want one of %v", d, got, want)
				}
			}
		}
	})
}

// drawn is the emptiest of d bins.
func drawn(random rand.Source, set []*pick.Endpoint, d int) int {
	if d == 2 {
		first, _ := pick.Better(0, random, set, nil)
		return first
	}
	best := pick.One(random, len(set))
	for range d - 1 {
		if i := pick.One(random, len(set)); set[i].Cost(0) < set[best].Cost(0) {
			best = i
		}
	}
	return best
}
