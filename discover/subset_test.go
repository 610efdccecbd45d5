package discover

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// uses returns the keys that s chooses of keys.
func uses(s Subset, keys []string) []string {
	var all ranking
	for _, key := range keys {
		all.note(s.score(key), Insert(key))
	}
	var chosen []string
	for _, m := range s.choose(all) {
		chosen = append(chosen, m.key)
	}
	slices.Sort(chosen)
	return chosen
}

// differ returns how many of a are not in b.
func differ(a, b []string) (n int) {
	for _, key := range a {
		if !slices.Contains(b, key) {
			n++
		}
	}
	return n
}

func addresses(r *rand.Rand, n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("http://10.0.%d.%d:8080", r.IntN(256), i))
	}
	return keys
}

func TestSubsetSpread(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	t.Run("a rendezvous gives endpoints as many clients as chance would", func(t *testing.T) {
		const endpoints, clients, size = 100, 1000, 10
		keys := addresses(r, endpoints)
		count := map[string]int{}
		for i := range clients {
			chosen := uses(Subset{Size: size, Identity: fmt.Sprintf("client-%d-%x", i, seed)}, keys)
			if len(chosen) != size {
				t.Fatalf("%d chosen", len(chosen))
			}
			for _, key := range chosen {
				count[key]++
			}
		}
		sum := 0.0
		for _, key := range keys {
			sum += math.Pow(float64(count[key])-clients*size/endpoints, 2)
		}
		// 100 numbers of variance 90: their sample variance is within 6 standard errors, which are √(2/99) of it.
		got, want := sum/(endpoints-1), clients*0.1*0.9
		t.Logf("clients per endpoint: 100 expected, standard deviation %.2f, expected %.2f; least %d, most %d", math.Sqrt(got), math.Sqrt(want),
			slices.Min(slices.Collect(maps.Values(count))), slices.Max(slices.Collect(maps.Values(count))))
		if bound := 6 * want * math.Sqrt(2.0/(endpoints-1)); math.Abs(got-want) > bound {
			t.Errorf("variance %.1f, want %.1f within %.1f", got, want, bound)
		}
	})
	t.Run("a ring gives endpoints as many clients as each other, or one more", func(t *testing.T) {
		for range 50 {
			endpoints, clients := 1+r.IntN(60), 1+r.IntN(60)
			size := 1 + r.IntN(endpoints)
			keys := addresses(r, endpoints)
			count := map[string]int{}
			for i := range clients {
				for _, key := range uses(Subset{Size: size, Index: i, Count: clients}, keys) {
					count[key]++
				}
			}
			least, most, total := clients, 0, 0
			for _, key := range keys {
				least, most, total = min(least, count[key]), max(most, count[key]), total+count[key]
			}
			if most-least > 1 || total != clients*size {
				t.Errorf("%d clients use %d of %d: %d to %d clients, %d in all", clients, size, endpoints, least, most, total)
			}
		}
	})
	for _, c := range []struct {
		name    string
		changes int
		subset  func(i int) Subset
	}{
		{"a rendezvous", 1, func(i int) Subset { return Subset{Size: 7, Identity: fmt.Sprint("client-", i)} }},
		{"a ring", 2, func(i int) Subset { return Subset{Size: 7, Index: i, Count: 20} }},
	} {
		t.Run(fmt.Sprintf("of %s at most %d change with an endpoint", c.name, c.changes), func(t *testing.T) {
			keys := addresses(r, 50)
			some := 0
			for i := range 20 {
				for gone := range keys {
					fewer := slices.Concat(keys[:gone], keys[gone+1:])
					a, b := uses(c.subset(i), keys), uses(c.subset(i), fewer)
					if n := differ(a, b); n > c.changes || n != differ(b, a) {
						t.Fatalf("%d change: %q, %q", n, a, b)
					} else if n > 0 {
						some++
					}
				}
			}
			if some == 0 {
				t.Error("nothing has ever changed")
			}
		})
	}
	t.Run("clients do not use the same", func(t *testing.T) {
		keys := addresses(r, 50)
		if slices.Equal(uses(Subset{Size: 10, Identity: "a"}, keys), uses(Subset{Size: 10, Identity: "b"}, keys)) {
			t.Error("they do")
		}
	})
	t.Run("a ring is the same whoever the clients are", func(t *testing.T) {
		keys := addresses(r, 50)
		ring := func(identity string) []string {
			return uses(Subset{Size: 10, Index: 1, Count: 3, Identity: identity}, keys)
		}
		if !slices.Equal(ring("a"), ring("b")) {
			t.Error("it differs, so that clients would share some endpoints and leave others out")
		}
	})
	t.Run("the order of changes does not matter", func(t *testing.T) {
		keys := addresses(r, 50)
		for _, s := range []Subset{{Size: 9, Identity: "a"}, {Size: 9, Index: 3, Count: 7}} {
			before := uses(s, keys)
			r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			if !slices.Equal(before, uses(s, keys)) {
				t.Errorf("%+v: it does", s)
			}
		}
	})
}

// first returns the endpoints that a client ranks in this order.
func first(s Subset, n int) []string {
	keys := []string{"a", "b", "c", "d", "e", "f"}
	slices.SortFunc(keys, func(a, b string) int {
		if s.score(a) > s.score(b) {
			return -1
		}
		return 1
	})
	return keys[:n]
}

func TestSubset(t *testing.T) {
	two := Subset{Size: 2, Identity: "me"}
	subsetting := func(t *testing.T) (v *voice, f *follower, k []string) {
		v = newVoice(t.Context())
		return v, follow(t, two.Of(v.source)), first(two, 4)
	}
	settled := func() { time.Sleep(settles); synctest.Wait() }

	bubble(t, "changes that come together are one, and inserts come first", func(t *testing.T) {
		v, f, k := subsetting(t)
		v.say(Insert(k[3]), Insert(k[2]), Insert(k[1]))
		f.want()
		settled()
		f.want("+"+k[1], "+"+k[2])
		v.say(Insert(k[0]))
		settled()
		f.want("+"+k[0], "-"+k[2])
		v.say(Remove(k[1]))
		settled()
		f.want("+"+k[2], "-"+k[1])
		v.say(Remove(k[2]), Remove(k[3]), Remove(k[0]))
		settled()
		f.want("-"+min(k[0], k[2]), "-"+max(k[0], k[2]))
	})
	bubble(t, "what keeps changing is passed on all the same", func(t *testing.T) {
		v, f, k := subsetting(t)
		for range 20 {
			v.say(Insert(k[0]))
			time.Sleep(settles - 1)
		}
		f.want("+" + k[0])
		if again := f.repeated(); len(again) != 0 {
			t.Errorf("%q was said again", again)
		}
	})
	bubble(t, "the reader hears of changes that are none", func(t *testing.T) {
		v, f, k := subsetting(t)
		v.say(Insert(k[0]))
		settled()
		v.fail(errBroken)
		v.say(Insert(k[0]))
		settled()
		v.say(Remove(k[3]))
		settled()
		f.want("+"+k[0], "error")
		if again := f.repeated(); !slices.Equal(again, []string{k[0], k[0]}) {
			t.Errorf("%q was said again", again)
		}
	})
	bubble(t, "one that moves has moved, if it is used", func(t *testing.T) {
		v, f, k := subsetting(t)
		v.say(Insert(k[0]), Insert(k[1]), Insert(k[2]))
		settled()
		f.want("+"+k[0], "+"+k[1])
		v.say(Change{Key: k[0], Addr: "1"}, Change{Key: k[2], Addr: "2"})
		settled()
		f.want("+" + k[0] + "@1")
		v.say(Remove(k[1]))
		settled()
		f.want("+"+k[2]+"@2", "-"+k[1])
	})
	bubble(t, "an error comes after the changes before it", func(t *testing.T) {
		v, f, k := subsetting(t)
		v.say(Insert(k[0]))
		v.fail(errBroken)
		f.want("+"+k[0], "error")
		if err := f.err(); err != errBroken {
			t.Errorf("got %v, want %v as it is", err, errBroken)
		}
	})
	bubble(t, "a source that ends has said everything", func(t *testing.T) {
		f := follow(t, two.Of(List("a", "b", "c", "d", "e", "f")))
		synctest.Wait()
		want := first(two, 2)
		if !f.over() {
			t.Error("it goes on")
		}
		f.want("+"+want[0], "+"+want[1])
	})
	bubble(t, "a source that panics has ended, with an error", func(t *testing.T) {
		f := follow(t, two.Of(func(func(Change, error) bool) { panic(errBroken) }))
		synctest.Wait()
		if p, ok := errors.AsType[*PanicError](f.err()); !ok || p.Value != errBroken || !f.over() {
			t.Errorf("got %v", f.err())
		}
	})
	bubble(t, "the source hears at its next change that the reader has enough", func(t *testing.T) {
		v, f, k := subsetting(t)
		f.stop()
		v.say(Insert(k[0]), Insert(k[1]))
		settled()
		if !f.over() {
			t.Fatal("the reader waits")
		}
		v.say(Insert(k[2]))
		select {
		case <-v.done:
		default:
			t.Error("it goes on")
		}
	})
	t.Run("values that mean nothing are refused", func(t *testing.T) {
		for want, s := range map[string]Subset{
			"size must be at least 1, got 0":                  {Identity: "me"},
			"count must be at least 1, or 0 for a":            {Size: 1, Count: -1},
			"index needs a count, got index 1":                {Size: 1, Identity: "me", Index: 1},
			"index must be 0 to 2, got 3":                     {Size: 1, Index: 3, Count: 3},
			"index must be 0 to 2, got -1":                    {Size: 1, Index: -1, Count: 3},
			"identity must not be empty, or count must be gi": {Size: 1},
		} {
			if err := s.Validate(); err == nil || !strings.HasPrefix(err.Error(), "discover: subset: "+want) {
				t.Errorf("%+v: got %v, want %q", s, err, want)
			}
		}
		if err := (Subset{Size: 1, Index: 2, Count: 3}).Validate(); err != nil {
			t.Error(err)
		}
		defer func() {
			if recover() == nil {
				t.Error("Of does not panic")
			}
		}()
		Subset{}.Of(List())
	})
}

func TestMap(t *testing.T) {
	// The last letter is the rack of an endpoint; those of rack x are left out.
	byName := func(c Change) (Change, bool) {
		name, rack, _ := strings.Cut(c.Addr, "/")
		return Change{Key: name, Addr: "http://" + c.Addr}, rack != "x"
	}
	bubble(t, "endpoints are renamed, moved and left out", func(t *testing.T) {
		v := newVoice(t.Context())
		f := follow(t, Map(v.source, byName))
		v.say(Change{Key: "1", Addr: "a/r"}, Change{Key: "2", Addr: "b/x"}, Change{Key: "1", Addr: "a/r"})
		f.want("+a@http://a/r")
		if again := f.repeated(); !slices.Equal(again, []string{"a"}) {
			t.Errorf("%q was said again", again)
		}
		v.fail(errBroken)
		v.say(Change{Key: "1", Addr: "a/s"}) // moves
		v.say(Change{Key: "1", Addr: "c/s"}) // is another
		f.want("error", "+a@http://a/s", "+c@http://c/s", "-a")
		v.say(Change{Key: "1", Addr: "c/x"}) // is left out
		v.say(Change{Key: "2", Addr: "b/r"}) // is not any more
		v.say(Remove("1"), Remove("2"), Remove("3"))
		f.want("-c", "+b@http://b/r", "-b")
	})
	bubble(t, "several that become one are gone with the last", func(t *testing.T) {
		v := newVoice(t.Context())
		f := follow(t, Map(v.source, byName))
		v.say(Change{Key: "1", Addr: "a/r"}, Change{Key: "2", Addr: "a/s"})
		v.say(Remove("2"), Remove("1"))
		f.want("+a@http://a/r", "+a@http://a/s", "+a@http://a/r", "-a")
	})
	t.Run("the reader may break off anywhere", func(t *testing.T) {
		source := func(yield func(Change, error) bool) {
			_ = yield(Change{Key: "1", Addr: "a/r"}, nil) && yield(Change{}, errBroken) && yield(Change{Key: "1", Addr: "b/r"}, nil)
		}
		var seen []int
		for enough := range 6 {
			n := 0
			for _, err := range Map(iter.Seq2[Change, error](source), byName) {
				if err != nil && !errors.Is(err, errBroken) {
					t.Errorf("got %v", err)
				}
				if n++; n > enough {
					break
				}
			}
			seen = append(seen, n)
		}
		if !slices.Equal(seen, []int{1, 2, 3, 4, 4, 4}) {
			t.Errorf("got %v", seen)
		}
	})
}
