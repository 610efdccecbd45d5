package proxy

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/belfry-go/belfry/discover"
)

// sources is what the balancer reads its endpoints from: the sources of all targets, which may be exchanged. A target that stays keeps
// its source, so its endpoints do not notice.
//
// What targets that are gone have named is removed when each of the new ones has said what it knows, or that it knows nothing, and
// at least one endpoint is left. So a misspelt name takes nothing away.
//
// An endpoint's key is its URL. Its address is that and, after a #, the version of what it is made with. A new version
// moves the endpoint: the balancer makes a new one, and the calls of the old one finish.
type sources struct {
	orders chan order
	news   chan item
	ended  context.Context
	end    context.CancelFunc

	// What follows is only touched in the goroutine that reads.
	version int
	running []*finder
	claims  map[string][]*finder       // who names a key
	said    map[string]discover.Change // what was said of it last

	mu     sync.Mutex
	states []TargetState
}

// An order is which targets there are, and how endpoints are made.
type order struct {
	targets  []string
	interval time.Duration
	version  int
}

// An item is what a target's source has said.
type item struct {
	from   *finder
	change discover.Change
	err    error
}

// A finder is the source of one target.
type finder struct {
	target   string
	interval time.Duration
	cancel   context.CancelFunc
	spoken   bool
	leaving  bool
	err      error
}

// settle is how long the first words of new sources are waited for after the first of each, since those come one by one.
const settle = 100 * time.Millisecond

func newSources(first order) *sources {
	s := &sources{orders: make(chan order, 1), news: make(chan item), claims: map[string][]*finder{}, said: map[string]discover.Change{}}
	s.ended, s.end = context.WithCancel(context.Background())
	s.orders <- first
	return s
}

// set exchanges the targets.
func (s *sources) set(o order) {
	select {
	case s.orders <- o:
	case <-s.ended.Done():
	}
}

// all is the source of the endpoints.
func (s *sources) all() iter.Seq2[discover.Change, error] {
	return func(yield func(discover.Change, error) bool) {
		defer s.end()
		var settled <-chan time.Time
		for {
			ok := true
			select {
			case o := <-s.orders:
				ok = s.follow(o, yield)
				settled = time.After(settle)
			case it := <-s.news:
				ok = s.note(it, yield)
				settled = time.After(settle)
			case <-settled:
				settled = nil
				ok = s.forget(yield)
			case <-s.ended.Done():
				return
			}
			if !ok {
				return
			}
			s.show()
		}
	}
}

// follow starts the sources of new targets, marks those of old ones, and moves the endpoints if they are made otherwise now.
func (s *sources) follow(o order, yield func(discover.Change, error) bool) bool {
	for _, r := range s.running {
		r.leaving = !slices.Contains(o.targets, r.target) || isSource(r.target) && r.interval != o.interval
	}
	for _, target := range o.targets {
		if !slices.ContainsFunc(s.running, func(r *finder) bool { return r.target == target && !r.leaving }) {
			s.start(target, o.interval)
		}
	}
	if s.version == o.version {
		return true
	}
	s.version = o.version
	for _, key := range slices.Sorted(mapKeys(s.claims)) {
		if !yield(s.insert(key), nil) {
			return false
		}
	}
	return true
}

func mapKeys[V any](m map[string]V) iter.Seq[string] {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (s *sources) start(target string, interval time.Duration) {
	ctx, cancel := context.WithCancel(s.ended)
	r := &finder{target: target, interval: interval, cancel: cancel}
	s.running = append(s.running, r)
	addr, give, _ := discover.Attributes(target) // the target was validated
	source := discover.Map(discover.List(addr), func(c discover.Change) (discover.Change, bool) { return give(c), true })
	if isSource(target) {
		var err error
		source, err = discover.Parse(ctx, []string{target}, discover.Config{Scheme: "http", Interval: interval})
		if err != nil { // the target was validated
			source = func(yield func(discover.Change, error) bool) { yield(discover.Change{}, err) }
		}
	}
	go func() {
		for change, err := range source {
			select {
			case s.news <- item{r, change, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
}

// note passes on what a source says, unless another says so still.
func (s *sources) note(it item, yield func(discover.Change, error) bool) bool {
	if !slices.Contains(s.running, it.from) {
		return true
	}
	it.from.spoken, it.from.err = true, it.err
	if it.err != nil {
		return yield(discover.Change{}, it.err)
	}
	key := it.change.ID()
	if it.change.Remove {
		return s.unclaim(key, it.from, yield)
	}
	if !slices.Contains(s.claims[key], it.from) {
		s.claims[key] = append(s.claims[key], it.from)
	}
	s.said[key] = it.change
	return yield(s.insert(key), nil)
}

func (s *sources) insert(key string) discover.Change {
	c := s.said[key]
	c.Key, c.Addr = key, key+"#"+strconv.Itoa(s.version)
	return c
}

func (s *sources) unclaim(key string, by *finder, yield func(discover.Change, error) bool) bool {
	held := slices.DeleteFunc(s.claims[key], func(r *finder) bool { return r == by })
	if len(held) > 0 {
		s.claims[key] = held
		return true
	}
	if _, known := s.claims[key]; !known {
		return true
	}
	delete(s.claims, key)
	delete(s.said, key)
	return yield(discover.Remove(key), nil)
}

// forget removes what is named by targets that are gone only, if it is time.
func (s *sources) forget(yield func(discover.Change, error) bool) bool {
	stays := false
	for _, held := range s.claims {
		stays = stays || slices.ContainsFunc(held, func(r *finder) bool { return !r.leaving })
	}
	if !stays || slices.ContainsFunc(s.running, func(r *finder) bool { return !r.leaving && !r.spoken }) {
		return true
	}
	for _, key := range slices.Sorted(mapKeys(s.claims)) {
		for _, r := range slices.Clone(s.claims[key]) {
			if r.leaving && !s.unclaim(key, r, yield) {
				return false
			}
		}
	}
	s.running = slices.DeleteFunc(s.running, func(r *finder) bool {
		if r.leaving {
			r.cancel()
		}
		return r.leaving
	})
	return true
}

// show copies what there is to see.
func (s *sources) show() {
	states := make([]TargetState, 0, len(s.running))
	for _, r := range s.running {
		n := 0
		for _, held := range s.claims {
			if slices.Contains(held, r) {
				n++
			}
		}
		states = append(states, TargetState{Target: r.target, Endpoints: n, Err: r.err, Leaving: r.leaving})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states = states
}

// targets returns what there is to see.
func (s *sources) targets() []TargetState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.states)
}

// A TargetState is what there is to see of a target.
type TargetState struct {
	// Target is as configured, in one spelling.
	Target string
	// Endpoints is how many servers it names.
	Endpoints int
	// Err is why looking for them has failed, nil if it has not the last time.
	Err error
	// Leaving says that the target is no longer configured, and stays until its successors are known.
	Leaving bool
}

var errVersion = errors.New("proxy: an address without a version")

// splitAddr returns scheme and base URL of an endpoint's address.
func splitAddr(addr string) (scheme, base string, err error) {
	base, _, ok := strings.Cut(addr, "#")
	if !ok {
		return "", "", fmt.Errorf("%w: %s", errVersion, addr)
	}
	scheme, rest, _ := strings.Cut(base, "://")
	if scheme == schemeH2C {
		base = "http://" + rest
	}
	return scheme, base, nil
}
