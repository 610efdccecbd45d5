package balance

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"

	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/internal/pick"
)

// discover reads source. Close ends that at the next change, and does not wait for it: a source may be waiting for news.
func (b *Balancer[Req, Res]) discover(source iter.Seq2[discover.Change, error]) {
	defer b.sourceEnded() // also after a Goexit in source
	n := 0
	err := guard(func() error {
		for change, err := range source {
			if n++; n%16 == 0 {
				runtime.Gosched() // so that the drivers of a long list share few goroutines, whose descriptors are never freed
			}
			if !b.apply(change, err) {
				break
			}
		}
		return nil
	})
	if err != nil {
		b.sourceFailed(err)
	}
}

var errNoKey = errors.New("balance: a change with neither key nor address")

// apply makes one change, and reports whether to go on.
func (b *Balancer[Req, Res]) apply(change discover.Change, err error) bool {
	key := change.ID()
	switch {
	case err != nil:
		return b.sourceFailed(err)
	case key == "":
		return b.sourceFailed(errNoKey)
	case change.Remove:
		return b.remove(key)
	}
	return b.insert(key, change.Addr, change.Generation, b.traits(change))
}

func (b *Balancer[Req, Res]) sourceFailed(err error) bool {
	b.mu.Lock()
	closed := b.closed
	b.source = err
	b.mu.Unlock()
	if !closed {
		b.emit(Event{Kind: DiscoveryFailed, Err: err})
	}
	return !closed
}

func (b *Balancer[Req, Res]) sourceEnded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.counted(0)
}

// insert adds the endpoint, or moves it: what served before goes on until its successor is ready. Traits of one that stays are exchanged.
func (b *Balancer[Req, Res]) insert(key, addr string, generation int, traits pick.Traits) bool {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return false
	}
	b.source = nil
	known := b.members[key]
	if known == b.orphan {
		b.orphan = nil
	}
	if known != nil && known.addr == addr && known.generation == generation && known.phase != lost {
		if b.characterise(known, traits) {
			b.regroup()
		}
		b.mu.Unlock()
		return true
	}
	ep := b.newEndpoint(key, addr)
	ep.generation = generation
	b.members[key] = ep
	b.listed = append(b.listed, ep)
	b.counted(+1)
	b.start(ep, nil)
	var replaced []*endpoint[Req, Res]
	switch {
	case known == nil:
	case known.ready:
		ep.old = known
	default:
		ep.old, known.old = known.old, nil
		replaced = b.takeOut(known)
	}
	if b.characterise(ep, traits) {
		b.regroup()
	}
	b.mu.Unlock()
	b.emit(Event{Kind: EndpointAdded, Key: key, Addr: addr})
	b.retire(replaced)
	return true
}

func (b *Balancer[Req, Res]) newEndpoint(key, addr string) *endpoint[Req, Res] {
	ctx, cancel := context.WithCancel(context.Background())
	return &endpoint[Req, Res]{key: key, addr: addr, ctx: ctx, cancel: cancel, guard: b.guard.New()}
}

// remove takes the endpoint out, unless it is the last and the set must not be empty.
func (b *Balancer[Req, Res]) remove(key string) bool {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return false
	}
	b.source = nil
	ep := b.members[key]
	var removed []*endpoint[Req, Res]
	switch {
	case ep == nil:
	case len(b.members) == 1 && !b.cfg.AllowEmpty:
		b.orphan = ep
	default:
		removed = b.takeOut(ep)
	}
	b.mu.Unlock()
	b.retire(removed)
	return true
}

// takeOut removes ep and its predecessor from what is chosen and counted, and returns them for retire. They stay listed
// until their last calls are over. mu is held.
func (b *Balancer[Req, Res]) takeOut(ep *endpoint[Req, Res]) []*endpoint[Req, Res] {
	if b.members[ep.key] == ep {
		delete(b.members, ep.key)
	}
	if b.orphan == ep {
		b.orphan = nil
	}
	out := []*endpoint[Req, Res]{ep}
	if ep.old != nil {
		out = append(out, ep.old)
		ep.old = nil
	}
	fewer := 0
	for _, ep := range out {
		if ep.phase != lost {
			fewer++
		}
		ep.phase = removed
		b.setError(ep, nil)
		b.withdraw(ep)
	}
	b.counted(-fewer)
	return out
}

// removeAll takes all endpoints out. mu is held.
func (b *Balancer[Req, Res]) removeAll() (all []*endpoint[Req, Res]) {
	for _, ep := range b.members {
		all = append(all, b.takeOut(ep)...)
	}
	return all
}

// retire ends what there is of removed endpoints, as soon as nobody holds them.
func (b *Balancer[Req, Res]) retire(eps []*endpoint[Req, Res]) {
	for _, ep := range eps {
		ep.cancel()
		if ep.load != nil { // nobody sets it once ep is removed
			b.part(ep, ep.load)
		}
		b.emit(Event{Kind: EndpointRemoved, Key: ep.key, Addr: ep.addr})
		if ep.Retire() {
			_ = b.bury(ep) // the event says how it went
		}
	}
}

// lose notes that the service of ep is closed for good. It stays listed, with the reason, until the source says something
// about it.
func (b *Balancer[Req, Res]) lose(ep *endpoint[Req, Res], err error) {
	b.mu.Lock()
	if ep.gone() {
		b.mu.Unlock()
		return
	}
	ep.phase = lost
	b.setError(ep, err)
	b.withdraw(ep)
	b.counted(-1)
	b.mu.Unlock()
	ep.cancel()
	b.emit(Event{Kind: EndpointClosed, Key: ep.key, Addr: ep.addr, Err: err})
}

// admit puts ep into the ready set, once it has a service; if it has a predecessor only after it has granted a permit, in
// the predecessor's place. It returns, for retire, what it replaces. mu is held.
func (b *Balancer[Req, Res]) admit(ep *endpoint[Req, Res], granted bool) []*endpoint[Req, Res] {
	if ep.ready || ep.phase != up || ep.old != nil && !granted {
		return nil
	}
	s := b.ready.Load()
	// append may write behind the end of the set that others read. No two sets are made from the same one.
	ep.ready = true
	b.publish(append(s.picks, &ep.Endpoint), append(s.eps, ep))
	ep.guard.Join()
	var replaced []*endpoint[Req, Res]
	if old := ep.old; old != nil {
		ep.old = nil
		replaced = b.takeOut(old)
	}
	if b.orphan != nil && b.orphan != ep {
		replaced = append(replaced, b.takeOut(b.orphan)...)
	}
	return replaced
}

// withdraw takes ep out of the ready set. mu is held.
func (b *Balancer[Req, Res]) withdraw(ep *endpoint[Req, Res]) {
	if !ep.ready {
		return
	}
	ep.ready = false
	ep.guard.Leave()
	if !ep.driven {
		b.resting--
	}
	s := b.ready.Load()
	i := slices.Index(s.eps, ep)
	b.publish(slices.Concat(s.picks[:i], s.picks[i+1:]), slices.Concat(s.eps[:i], s.eps[i+1:]))
}

// unlist forgets ep. mu is held.
func (b *Balancer[Req, Res]) unlist(ep *endpoint[Req, Res]) {
	if i := slices.Index(b.listed, ep); i >= 0 {
		b.listed = slices.Delete(b.listed, i, i+1)
	}
}
