package discover

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// Connections makes several endpoints of each address, whose dialler gives each connections of its own. That is for an address with several
// servers behind it (a virtual IP, a load balancer of connections), where a connection stays with the server that it was opened to, and a
// client with one connection uses one server.
//
// The endpoints of an address have its key, the second and later ones with #2, #3 and so on behind it, and the rest of what its source says of it.
//
// With RotateEvery each is made anew now and then, so that the client's connections spread again when servers come and go: a change says
// so by another [Change].Generation. A balancer makes the new one before it lets go of the old one, whose calls finish. The endpoints of one
// address take turns, a RotateEvery divided by PerAddress apart.
type Connections struct {
	// PerAddress is how many endpoints there are for each address, up to 1000. 0 means 1.
	PerAddress int
	// RotateEvery is how long each stays, shortened by chance, at least 10ms for each of PerAddress. 0 means for as long as its address.
	RotateEvery time.Duration
	// Jitter is the share of the pauses between two turns that chance may take away, below 1. 0 means 0.2. When an address appears, chance
	// says how much of the first pause is over.
	Jitter float64
	// Rand is where chance comes from. Nil means the runtime's own source.
	Rand rand.Source
}

const (
	mostPerAddress = 1000
	leastApart     = 10 * time.Millisecond
	// asksAgain is after which time without news the reader is asked whether it is there.
	asksAgain = 10 * time.Second
)

// Validate says which field is out of range.
func (c Connections) Validate() error {
	switch {
	case c.PerAddress < 0 || c.PerAddress > mostPerAddress:
		return fmt.Errorf("discover: connections: per address must be from 1 to %d, or 0 for 1, got %d", mostPerAddress, c.PerAddress)
	case c.RotateEvery != 0 && c.apart() < leastApart:
		return fmt.Errorf("discover: connections: rotate every must be at least %v, or 0 for never, got %v", leastApart*time.Duration(max(c.PerAddress, 1)), c.RotateEvery)
	case !(c.Jitter >= 0 && c.Jitter < 1): // so written, it refuses NaN too
		return fmt.Errorf("discover: connections: jitter must be at least 0 and below 1, got %v", c.Jitter)
	}
	return nil
}

// apart is the longest pause between two turns at an address.
func (c Connections) apart() time.Duration {
	return c.RotateEvery / time.Duration(max(c.PerAddress, 1))
}

// Of returns the endpoints of source. With RotateEvery it goes on when source has ended, until the reader has enough, which it is asked every 10 s at
// least, by naming an endpoint again. source is read in a goroutine of its own and told by its next change, as [Merge] does; one that panics
// has ended, with a [PanicError]. Of panics with the error of Validate if there is one.
func (c Connections) Of(source iter.Seq2[Change, error]) iter.Seq2[Change, error] {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	c.PerAddress = max(c.PerAddress, 1)
	if c.Jitter == 0 {
		c.Jitter = defaultJitter
	}
	chance := rand.Float64
	if c.Rand != nil {
		chance = rand.New(c.Rand).Float64
	}
	return func(yield func(Change, error) bool) {
		news, enough := make(chan item), make(chan struct{})
		defer close(enough)
		go forward(0, source, news, enough)
		t := turns{Connections: c, chance: chance, yield: yield}
		t.read(news)
	}
}

// turns is the addresses that are there, and when it is whose turn.
type turns struct {
	Connections
	chance func() float64
	yield  func(Change, error) bool
	all    []*address
	failed bool // the latest news was an error, which naming an endpoint would belie
}

// An address is the endpoints of one.
type address struct {
	change      Change
	generations []int
	next        int // whose turn it is
	due         time.Time
}

// read passes on what changes, until there is no more to come or the reader has enough.
func (t *turns) read(news <-chan item) {
	timer := time.NewTimer(asksAgain)
	defer timer.Stop()
	for {
		select {
		case it := <-news:
			if !t.note(it) || it.ended && t.RotateEvery == 0 {
				return
			}
		case <-timer.C:
			if !t.rotate() {
				return
			}
		}
		timer.Reset(t.pause())
	}
}

// pause is how long there is nothing to do.
func (t *turns) pause() time.Duration {
	pause := asksAgain
	if t.RotateEvery == 0 {
		return pause
	}
	for _, a := range t.all {
		pause = min(pause, time.Until(a.due))
	}
	return max(pause, 0)
}

// note passes on what the source says.
func (t *turns) note(it item) bool {
	if it.err != nil {
		t.failed = true
		return t.yield(it.change, it.err)
	}
	if it.ended {
		return true
	}
	t.failed = false
	key := it.change.ID()
	i := slices.IndexFunc(t.all, func(a *address) bool { return a.change.Key == key })
	if it.change.Remove {
		if i >= 0 {
			t.all = slices.Delete(t.all, i, i+1)
		}
		return t.each(func(slot int) Change { return Remove(slotKey(key, slot)) })
	}
	it.change.Key = key
	if i < 0 {
		first := time.Duration((1 - t.chance()) * float64(t.apart()))
		i, t.all = len(t.all), append(t.all, &address{generations: make([]int, t.PerAddress), due: time.Now().Add(first)})
	}
	a := t.all[i]
	a.change = it.change
	return t.each(a.endpoint)
}

// each yields a change for each of the endpoints of an address.
func (t *turns) each(change func(slot int) Change) bool {
	for slot := range t.PerAddress {
		if !t.yield(change(slot), nil) {
			return false
		}
	}
	return true
}

// rotate makes one endpoint anew of each address that is due. If none is, it names one again.
func (t *turns) rotate() bool {
	now, said := time.Now(), t.failed || len(t.all) == 0
	for _, a := range t.all {
		if t.RotateEvery == 0 || now.Before(a.due) {
			continue
		}
		slot := a.next
		a.generations[slot]++
		a.next = (slot + 1) % t.PerAddress
		a.due = now.Add(time.Duration((1 - t.Jitter*t.chance()) * float64(t.apart())))
		said = true
		if !t.yield(a.endpoint(slot), nil) {
			return false
		}
	}
	return said || t.yield(t.all[0].endpoint(0), nil)
}

func (a *address) endpoint(slot int) Change {
	c := a.change
	c.Key = slotKey(c.Key, slot)
	c.Generation += a.generations[slot]
	return c
}

func slotKey(key string, slot int) string {
	if slot == 0 {
		return key
	}
	return key + "#" + strconv.Itoa(slot+1)
}
