package discover

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// A voice is a source that says what a test tells it to.
type voice struct {
	ctx  context.Context
	says chan func(yield func(Change, error) bool) bool
	done chan struct{} // closed when the source has returned
}

func newVoice(ctx context.Context) *voice {
	return &voice{ctx: ctx, says: make(chan func(func(Change, error) bool) bool), done: make(chan struct{})}
}

func (v *voice) source(yield func(Change, error) bool) {
	defer close(v.done)
	for {
		select {
		case <-v.ctx.Done():
			return
		case say, ok := <-v.says:
			if !ok || !say(yield) {
				return
			}
		}
	}
}

func (v *voice) say(changes ...Change) {
	for _, change := range changes {
		v.says <- func(yield func(Change, error) bool) bool { return yield(change, nil) }
	}
	synctest.Wait()
}

func (v *voice) fail(err error) {
	v.says <- func(yield func(Change, error) bool) bool { return yield(Change{}, err) }
	synctest.Wait()
}

// merging follows two voices.
func merging(t *testing.T) (a, b *voice, f *follower) {
	t.Helper()
	a, b = newVoice(t.Context()), newVoice(t.Context())
	return a, b, follow(t, Merge(a.source, b.source))
}

func TestMerge(t *testing.T) {
	bubble(t, "changes and errors of all come through", func(t *testing.T) {
		a, b, f := merging(t)
		a.say(Insert("a"))
		b.say(Insert("b"))
		a.fail(errBroken)
		a.say(Remove("a"))
		f.want("+a", "+b", "error", "-a")
		if err := f.err(); err != errBroken {
			t.Errorf("got %v, want %v as it is", err, errBroken)
		}
	})
	bubble(t, "a key of two sources is gone with the last", func(t *testing.T) {
		a, b, f := merging(t)
		a.say(Insert("x"))
		b.say(Insert("x"), Insert("x"))
		a.say(Remove("x"))
		f.want("+x")
		b.say(Remove("x"))
		f.want("-x")
		b.say(Insert("x"))
		a.say(Remove("x")) // which it has not
		f.want("+x")
	})
	bubble(t, "what is said again is said again", func(t *testing.T) {
		a, _, f := merging(t)
		a.say(Insert("x"), Insert("x"))
		if got := f.repeated(); len(got) != 1 {
			t.Errorf("%q was said again, want once", got)
		}
	})
	bubble(t, "an address moves to what was said last, and back", func(t *testing.T) {
		a, b, f := merging(t)
		a.say(Change{Key: "x", Addr: "1"})
		b.say(Change{Key: "x", Addr: "2"})
		f.want("+x@1", "+x@2")
		a.say(Change{Key: "x", Addr: "1"}) // again, which is no news
		f.want()
		b.say(Remove("x"))
		f.want("+x@1")
		a.say(Change{Key: "x", Addr: "3"})
		f.want("+x@3")
		a.say(Remove("x"))
		f.want("-x")
	})
	bubble(t, "a source that ends has removed nothing", func(t *testing.T) {
		a, b, f := merging(t)
		a.say(Insert("x"))
		close(a.says)
		b.say(Insert("x"), Remove("x"), Insert("y"))
		f.want("+x", "+y")
		if f.over() {
			t.Error("it has ended before all have")
		}
		close(b.says)
		synctest.Wait()
		if !f.over() {
			t.Error("it goes on after all have ended")
		}
	})
	bubble(t, "a change about nothing is passed on", func(t *testing.T) {
		n := 0
		for change, err := range Merge(List("")) {
			if n++; change != (Change{}) || err != nil {
				t.Errorf("got %v, %v", change, err)
			}
		}
		if n != 1 {
			t.Errorf("%d changes, want 1", n)
		}
	})
	bubble(t, "no sources have said everything", func(t *testing.T) {
		f := follow(t, Merge())
		synctest.Wait()
		if !f.over() {
			t.Error("it goes on")
		}
	})
	bubble(t, "lists are read to their ends", func(t *testing.T) {
		f := follow(t, Merge(List("a", "b"), List(), List("b", "c")))
		synctest.Wait()
		if set := slices.Sorted(maps.Keys(f.set)); !slices.Equal(set, []string{"a", "b", "c"}) || !f.over() {
			t.Errorf("got %q", set)
		}
	})
	bubble(t, "the reader may break off at an error", func(t *testing.T) {
		a, _, f := merging(t)
		f.stop()
		a.fail(errBroken)
		if !f.over() {
			t.Error("it goes on")
		}
	})
	bubble(t, "each source hears from its reader at its next change", func(t *testing.T) {
		a, b, f := merging(t)
		f.stop()
		a.say(Insert("a"))
		if !f.over() {
			t.Fatal("the reader waits for the other source")
		}
		for _, v := range []*voice{a, b} {
			select {
			case <-v.done:
				t.Error("told before it has said anything")
			default:
			}
			v.say(Insert("more"))
			synctest.Wait()
			select {
			case <-v.done:
			default:
				t.Error("it goes on")
			}
		}
	})
	bubble(t, "a source that ends badly has ended, with an error", func(t *testing.T) {
		for name, end := range map[string]func(){
			"panicked: broken":  func() { panic(errBroken) },
			"panicked: nothing": func() { panic("nothing") },
			"runtime.Goexit":    runtime.Goexit,
		} {
			a, b, f := merging(t)
			a.say(Insert("a"))
			a.says <- func(func(Change, error) bool) bool { end(); return true }
			synctest.Wait()
			b.say(Insert("b"))
			f.want("+a", "error", "+b")
			f.wantErr(name)
			if e, ok := errors.AsType[*PanicError](f.err()); ok != (name != "runtime.Goexit") ||
				ok && !strings.Contains(string(e.Stack), "TestMerge") || errors.Is(f.err(), errBroken) != (name == "panicked: broken") {
				t.Errorf("%s: got %v", name, f.err())
			}
			close(b.says)
			synctest.Wait()
			if !f.over() {
				t.Errorf("%s: it goes on", name)
			}
		}
	})
}

// TestMergeRandomly compares what a reader knows with the union of what its sources have said.
func TestMergeRandomly(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	synctest.Test(t, func(t *testing.T) {
		var voices []*voice
		var sources []iter.Seq2[Change, error]
		said := [3]map[string]bool{}
		for i := range said {
			v := newVoice(t.Context())
			voices, sources = append(voices, v), append(sources, v.source)
			said[i] = map[string]bool{}
		}
		f := follow(t, Merge(sources...))
		for range 1000 {
			i, key := random.IntN(len(said)), fmt.Sprint(random.IntN(5))
			if random.IntN(2) == 0 {
				voices[i].say(Insert(key))
				said[i][key] = true
			} else {
				voices[i].say(Remove(key))
				delete(said[i], key)
			}
			want := map[string]string{}
			for _, keys := range said {
				for key := range keys {
					want[key] = key
				}
			}
			f.mu.Lock()
			set := maps.Clone(f.set)
			f.mu.Unlock()
			if !maps.Equal(set, want) {
				t.Fatalf("the reader knows %v, want %v", set, want)
			}
		}
	})
}
