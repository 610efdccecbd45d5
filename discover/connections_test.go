package discover

import (
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// hearing is what c says of a source in the hands of the test, until it has read enough.
func hearing(t *testing.T, c Connections) (say chan<- Change, heard func() []Change) {
	const seed = 5
	t.Logf("seed %d", seed)
	c.Rand = rand.NewPCG(seed, seed)
	news, out, enough := make(chan Change), make(chan Change, 10_000), make(chan struct{})
	go func() {
		defer close(out)
		for change, err := range c.Of(channel(news)) {
			if err != nil {
				t.Error(err)
			}
			select {
			case <-enough:
				return
			default:
				out <- change
			}
		}
	}()
	t.Cleanup(func() {
		close(enough)
		begun := time.Now()
		close(news)
		for range out {
		}
		if took := time.Since(begun); took > asksAgain {
			t.Errorf("it went on for %v", took)
		}
	})
	return news, func() (all []Change) {
		synctest.Wait()
		for len(out) > 0 {
			all = append(all, <-out)
		}
		return all
	}
}

func channel(news <-chan Change) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for c := range news {
			if !yield(c, nil) {
				return
			}
		}
	}
}

func TestConnectionsPerAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		say, heard := hearing(t, Connections{PerAddress: 3})
		say <- Change{Addr: "vip:80", Weight: 2, Zone: "z"}
		at := func(key string, weight int) Change {
			return Change{Key: key, Addr: "vip:80", Weight: weight, Zone: "z"}
		}
		if got, want := heard(), []Change{at("vip:80", 2), at("vip:80#2", 2), at("vip:80#3", 2)}; !slices.Equal(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		say <- at("vip:80", 5)
		if got, want := heard(), []Change{at("vip:80", 5), at("vip:80#2", 5), at("vip:80#3", 5)}; !slices.Equal(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		time.Sleep(8 * time.Second)
		say <- Remove("vip:80")
		if got, want := heard(), []Change{Remove("vip:80"), Remove("vip:80#2"), Remove("vip:80#3")}; !slices.Equal(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		time.Sleep(time.Minute)
		if got := heard(); len(got) != 0 {
			t.Errorf("nobody is there, and it said %+v", got)
		}
	})
	synctest.Test(t, func(t *testing.T) { // it ends with its source
		n := 0
		for _, err := range (Connections{PerAddress: 2}).Of(List("a", "b")) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 4 {
			t.Errorf("%d changes", n)
		}
	})
}

func TestConnectionsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		say, heard := hearing(t, Connections{PerAddress: 3, RotateEvery: 30 * time.Second})
		say <- Insert("vip:80")
		say <- Insert("other:80")
		generations := map[string]int{}
		for _, c := range heard() {
			generations[c.Key] = c.Generation
		}
		turns, latest, order := map[string]int{}, map[string]time.Time{}, []string{}
		begun := time.Now()
		for time.Since(begun) < 10*time.Minute {
			time.Sleep(time.Millisecond * 100)
			for _, c := range heard() {
				if c.Generation == generations[c.Key] {
					continue // it asks whether anybody is there
				}
				if c.Generation != generations[c.Key]+1 {
					t.Errorf("%s is made anew as %d after %d", c.Key, c.Generation, generations[c.Key])
				}
				generations[c.Key] = c.Generation
				turns[c.Key]++
				if before, ok := latest[c.Addr]; ok {
					if pause := time.Since(before); pause < 7900*time.Millisecond || pause > 10100*time.Millisecond {
						t.Errorf("%v between two turns at an address", pause)
					}
				}
				latest[c.Addr] = time.Now()
				if c.Addr == "vip:80" {
					order = append(order, strings.TrimPrefix(c.Key, "vip:80"))
				}
			}
		}
		for key, n := range turns {
			if n < 20 || n > 25 {
				t.Errorf("%s was made anew %d times in 10 min", key, n)
			}
		}
		for i, slot := range order {
			if slot != []string{"", "#2", "#3"}[i%3] {
				t.Fatalf("the turns are %v", order)
			}
		}
		if len(turns) != 6 {
			t.Errorf("turns %v", turns)
		}
		time.Sleep(time.Second)
		say <- Change{Key: "vip:80", Addr: "new:80"} // a move keeps count, so that no number comes twice
		for _, c := range heard() {
			if c.Addr == "new:80" && c.Generation != generations[c.Key] {
				t.Errorf("%+v, want generation %d", c, generations[c.Key])
			}
		}
	})
}

// The source has ended, and turns go on.
func TestConnectionsOfASetThatIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most, begun := 0, time.Now()
		for c, err := range (Connections{RotateEvery: time.Minute}).Of(List("a")) {
			if err != nil {
				t.Fatal(err)
			}
			if most = max(most, c.Generation); most == 3 {
				break
			}
		}
		if took := time.Since(begun); took < 2*48*time.Second || took > 3*time.Minute {
			t.Errorf("three turns took %v", took)
		}
	})
}

// An error is passed on, and stays the latest word until there is news.
func TestConnectionsPassOnErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("lost")
		source := func(yield func(Change, error) bool) {
			_ = yield(Insert("a"), nil) && yield(Change{}, lost)
		}
		begun, failed := time.Now(), time.Duration(-1)
		for c, err := range (Connections{RotateEvery: time.Hour}).Of(source) {
			switch {
			case errors.Is(err, lost):
				failed = time.Since(begun)
			case c.Generation > 0:
				if failed != 0 {
					t.Errorf("the error came after %v", failed)
				}
				return
			case failed >= 0:
				t.Fatalf("%v after the error an endpoint was named again", time.Since(begun))
			}
		}
	})
}

func TestConnectionsValidate(t *testing.T) {
	for _, c := range []Connections{
		{PerAddress: -1},
		{PerAddress: 1001},
		{RotateEvery: -1},
		{RotateEvery: 9 * time.Millisecond},
		{PerAddress: 10, RotateEvery: 99 * time.Millisecond},
		{Jitter: -0.1},
		{Jitter: 1},
	} {
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), "discover: connections: ") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, c := range []Connections{{}, {PerAddress: 1000, RotateEvery: 10 * time.Second, Jitter: 0.9}} {
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
