package discover

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// bubble runs a case in a bubble.
func bubble(t *testing.T, name string, run func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, run) })
}

// An oracle answers look-ups, and notes when they were made.
type oracle struct {
	mu    sync.Mutex
	addrs []string
	err   error
	takes time.Duration
	begun time.Time
	asked []time.Duration
}

func newOracle(addrs ...string) *oracle { return &oracle{addrs: addrs, begun: time.Now()} }

func (o *oracle) say(err error, addrs ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.addrs, o.err = addrs, err
}

func (o *oracle) look(ctx context.Context) ([]Change, error) {
	o.mu.Lock()
	o.asked = append(o.asked, time.Since(o.begun))
	addrs, err, takes := slices.Clone(o.addrs), o.err, o.takes
	o.mu.Unlock()
	if !wait(ctx, takes) {
		return nil, ctx.Err()
	}
	var found []Change
	for _, addr := range addrs {
		c, err := parseEndpoint("", addr)
		if err != nil {
			c = Insert(addr)
		}
		found = append(found, c)
	}
	return found, err
}

// pauses returns the times between look-ups since the last call, in whole milliseconds.
func (o *oracle) pauses() (pauses []time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range len(o.asked) - 1 {
		pauses = append(pauses, (o.asked[i+1] - o.asked[i]).Round(time.Millisecond))
	}
	o.asked = o.asked[max(0, len(o.asked)-1):]
	return pauses
}

var errBroken = errors.New("broken")

// polled follows what the oracle says, until the test ends.
func polled(t *testing.T, o *oracle, cfg Config) *follower {
	t.Helper()
	f := follow(t, polling(t, t.Context(), o, cfg))
	synctest.Wait()
	return f
}

func polling(t *testing.T, ctx context.Context, o *oracle, cfg Config) iter.Seq2[Change, error] {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return poll(ctx, "oracle", cfg.withDefaults(defaultInterval), o.look)
}

// after lets time pass, and a hair more, so that what was due then is done.
func after(d time.Duration) {
	time.Sleep(d + time.Nanosecond)
	synctest.Wait()
}

func TestPoll(t *testing.T) {
	bubble(t, "what an endpoint is chosen by changes", func(t *testing.T) {
		o := newOracle("a:1", "b:1 weight=2")
		f := polled(t, o, Config{})
		f.want("+a:1", "+b:1 weight=2")
		o.say(nil, "b:1 weight=3 zone=c", "a:1")
		after(defaultInterval)
		f.want("+b:1 weight=3 zone=c")
		o.say(nil, "b:1 priority=1", "a:1", "b:1")
		after(defaultInterval)
		f.want("+b:1 priority=1")
		o.say(nil, "b:1 priority=1")
		after(defaultInterval)
		f.want("-a:1")
	})
	bubble(t, "a set becomes another, inserts first", func(t *testing.T) {
		o := newOracle("b", "a", "b")
		f := polled(t, o, Config{})
		f.want("+a", "+b")
		if again := f.repeated(); len(again) > 0 {
			t.Errorf("%q said twice", again)
		}
		o.say(nil, "c", "d", "b")
		after(defaultInterval)
		f.want("+c", "+d", "-a")
		o.say(nil, "a")
		after(defaultInterval)
		f.want("+a", "-b", "-c", "-d")
	})
	bubble(t, "an error keeps the set, and says where it comes from", func(t *testing.T) {
		o := newOracle("a", "b")
		f := polled(t, o, Config{})
		o.say(errBroken)
		after(defaultInterval)
		f.want("+a", "+b", "error")
		if err := f.err(); !errors.Is(err, errBroken) || err.Error() != "discover: oracle: broken" {
			t.Errorf("got %v", err)
		}
		o.say(nil, "b")
		after(defaultInterval)
		f.want("-a")
	})
	bubble(t, "an empty answer keeps the set and is an error", func(t *testing.T) {
		o := newOracle("a", "b")
		f := polled(t, o, Config{})
		o.say(nil)
		after(defaultInterval)
		f.want("+a", "+b", "error")
		if err := f.err(); !errors.Is(err, ErrEmpty) {
			t.Errorf("got %v, want ErrEmpty", err)
		}
	})
	bubble(t, "an empty answer at the start is an error too", func(t *testing.T) {
		f := polled(t, newOracle(), Config{})
		f.want("error")
	})
	bubble(t, "AllowEmpty takes all, whether or not the answer has a reason", func(t *testing.T) {
		for _, reason := range []error{nil, fmt.Errorf("%w: %w", ErrEmpty, errBroken)} {
			o := newOracle("a", "b")
			f := polled(t, o, Config{AllowEmpty: true})
			o.say(reason)
			after(defaultInterval)
			f.want("+a", "+b", "-a", "-b")
			after(time.Hour)
			f.want()
			o.say(errBroken)
			after(defaultInterval)
			f.want("error")
			o.say(nil, "c")
			after(defaultInterval)
			f.want("+c")
		}
	})
	bubble(t, "when nothing has changed the endpoints are named in turn", func(t *testing.T) {
		f := polled(t, newOracle("a", "b", "c"), Config{Rand: chance(0)})
		after(6 * defaultInterval)
		f.want("+a", "+b", "+c")
		again := f.repeated()
		slices.Sort(again)
		if want := []string{"a", "a", "b", "b", "c", "c"}; !slices.Equal(again, want) {
			t.Errorf("%q were named again, want %q", again, want)
		}
	})
	bubble(t, "after an error something is said even if nothing has changed", func(t *testing.T) {
		o := newOracle("a")
		f := polled(t, o, Config{})
		o.say(errBroken)
		after(defaultInterval)
		f.repeated()
		o.say(nil, "a")
		after(defaultInterval)
		f.want("+a", "error")
		if len(f.repeated()) == 0 {
			t.Error("the reader cannot know that the error is over")
		}
	})
	bubble(t, "every reader gets the whole set", func(t *testing.T) {
		source := polling(t, t.Context(), newOracle("a"), Config{})
		first := follow(t, source)
		after(time.Minute)
		second := follow(t, source)
		synctest.Wait()
		first.want("+a")
		second.want("+a")
	})
}

func TestPollEnds(t *testing.T) {
	bubble(t, "with its context, while it waits", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := follow(t, polling(t, ctx, newOracle("a"), Config{}))
		synctest.Wait()
		cancel()
		synctest.Wait()
		if !f.over() {
			t.Error("it goes on")
		}
		f.want("+a")
	})
	bubble(t, "with its context, while it looks, without a word", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		o := newOracle("a")
		o.takes = time.Hour
		f := follow(t, polling(t, ctx, o, Config{}))
		after(time.Minute)
		cancel()
		synctest.Wait()
		if !f.over() {
			t.Error("it goes on")
		}
		f.want()
	})
	bubble(t, "within an interval after its reader has, even if nothing changes", func(t *testing.T) {
		for _, err := range []error{nil, errBroken} {
			o := newOracle("a")
			o.say(err, "a")
			f := polled(t, o, Config{})
			f.stop()
			after(defaultInterval)
			if !f.over() {
				t.Errorf("it goes on, having said %v", err)
			}
		}
	})
	bubble(t, "wherever its reader breaks off", func(t *testing.T) {
		for enough := 1; enough <= 8; enough++ { // one that goes on all the same panics
			o := newOracle("a", "b", "c")
			n := 0
			for change, err := range polling(t, t.Context(), o, Config{}) {
				if err != nil {
					t.Fatal(err)
				}
				if n++; n == enough {
					break
				}
				if change.ID() == "c" {
					o.say(nil, "d", "e")
				}
			}
			if n != enough {
				t.Errorf("%d changes, want %d", n, enough)
			}
		}
	})
}

func TestPollPauses(t *testing.T) {
	const almost = 1 - 1e-9
	repeat := func(n int, d time.Duration) []time.Duration { return slices.Repeat([]time.Duration{d}, n) }
	for _, c := range []struct {
		name string
		cfg  Config
		err  error
		want []time.Duration
	}{
		{"the default interval at its longest", Config{Rand: chance(0)}, nil, repeat(5, 30*time.Second)},
		{"the default interval at its shortest", Config{Rand: chance(almost)}, nil, repeat(5, 24*time.Second)},
		{"an interval at its longest", Config{Interval: time.Minute, Jitter: 0.5, Rand: chance(0)}, nil, repeat(5, time.Minute)},
		{"an interval in the middle", Config{Interval: time.Minute, Jitter: 0.5, Rand: chance(0.5)}, nil, repeat(5, 45*time.Second)},
		{"an interval at its shortest", Config{Interval: time.Minute, Jitter: 0.5, Rand: chance(almost)}, nil, repeat(5, 30*time.Second)},
		{
			"back-off at its longest",
			Config{Rand: chance(0)},
			errBroken,
			[]time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second},
		},
		{
			"back-off in the middle",
			Config{Rand: chance(0.5)},
			errBroken,
			[]time.Duration{900 * time.Millisecond, 1800 * time.Millisecond, 3600 * time.Millisecond, 7200 * time.Millisecond, 14400 * time.Millisecond, 27 * time.Second, 27 * time.Second},
		},
		{"back-off within a short interval", Config{Interval: 100 * time.Millisecond, Rand: chance(0)}, errBroken, repeat(5, 100*time.Millisecond)},
		{"an empty answer backs off", Config{Rand: chance(0)}, ErrEmpty, []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second}},
	} {
		bubble(t, c.name, func(t *testing.T) {
			o := newOracle("a")
			o.say(c.err, "a")
			polled(t, o, c.cfg)
			total := time.Duration(0)
			for _, d := range c.want {
				total += d
			}
			after(total + time.Millisecond)
			if got := o.pauses(); !slices.Equal(got, c.want) {
				t.Errorf("pauses are %v, want %v", got, c.want)
			}
		})
	}
	bubble(t, "a success ends the back-off", func(t *testing.T) {
		o := newOracle("a")
		o.say(errBroken)
		polled(t, o, Config{Rand: chance(0)})
		after(7 * time.Second) // at 0, 1, 3 and 7
		o.say(nil, "a")
		after(8 * time.Second) // at 15
		o.say(errBroken)
		after(31 * time.Second) // at 45 and 46
		want := []time.Duration{1, 2, 4, 8, 30, 1}
		for i := range want {
			want[i] *= time.Second
		}
		if got := o.pauses(); !slices.Equal(got, want) {
			t.Errorf("pauses are %v, want %v", got, want)
		}
	})
	bubble(t, "pauses are spread over the share that jitter has", func(t *testing.T) {
		o := newOracle("a")
		polled(t, o, Config{Interval: time.Second, Jitter: 0.4})
		after(10 * time.Minute)
		pauses := o.pauses()
		shortest, longest := slices.Min(pauses), slices.Max(pauses)
		if shortest < 600*time.Millisecond || longest > time.Second || shortest > 620*time.Millisecond || longest < 980*time.Millisecond {
			t.Errorf("%d pauses are %v to %v, want 600ms to 1s", len(pauses), shortest, longest)
		}
	})
	bubble(t, "the pause begins after the look-up", func(t *testing.T) {
		o := newOracle("a")
		o.takes = 10 * time.Second
		polled(t, o, Config{Rand: chance(0)})
		after(85 * time.Second)
		if got, want := o.pauses(), repeat(2, 40*time.Second); !slices.Equal(got, want) {
			t.Errorf("look-ups began %v apart, want %v", got, want)
		}
	})
}

// TestPollRandomly compares what a reader knows with what was said, over many random updates.
func TestPollRandomly(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	synctest.Test(t, func(t *testing.T) {
		o := newOracle()
		f := polled(t, o, Config{AllowEmpty: true, Interval: time.Second})
		known := map[string]string{}
		for range 500 {
			wanted := map[string]string{}
			for range random.IntN(8) {
				addr := string(rune('a' + random.IntN(10)))
				wanted[addr] = addr
			}
			failed := random.IntN(5) == 0
			said := slices.Collect(maps.Keys(wanted))
			random.Shuffle(len(said), func(i, j int) { said[i], said[j] = said[j], said[i] })
			if failed {
				o.say(errBroken, said...)
			} else {
				o.say(nil, said...)
			}
			after(time.Second)
			if !failed {
				known = wanted
			}
			f.mu.Lock()
			set, log := maps.Clone(f.set), f.log
			f.log = nil
			f.mu.Unlock()
			if !maps.Equal(set, known) {
				t.Fatalf("the reader knows %v, want %v", set, known)
			}
			removed := false
			for _, entry := range log {
				switch {
				case entry[0] == '-':
					removed = true
				case entry[0] == '+' && removed, entry[0] == 'u':
					t.Fatalf("an insert after a remove, or of something unknown: %q", log)
				}
			}
		}
	})
}
