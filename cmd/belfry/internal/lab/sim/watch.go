package sim

import (
	"math/rand/v2"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/internal/pick"
	"github.com/belfry-go/belfry/load"
	"github.com/belfry-go/belfry/outlier"
)

// A watch is a client's outlier detection and guard rail, as package balance and package outlier have them. The zero watch sees nothing.
type watch struct {
	guard *eject.Guard
	peers *outlier.Detector // nil if it heeds what answers ask for, and nothing else
}

// A watched is what a watch knows of an endpoint.
type watched struct {
	guard *eject.Endpoint
	peer  *outlier.Endpoint
	alone int64 // until when it has asked to be left alone
	away  bool  // it was passed over because it is out
}

const seedWatch = 99

func newWatch(p Policy, seed uint64, client int) watch {
	switch {
	case p.heeds != nil:
		return watch{guard: eject.New(*p.heeds)}
	case !p.watches:
		return watch{}
	}
	return watch{eject.New(eject.Config{}), outlier.NewDetector(outlier.Config{Rand: rand.NewPCG(seed, seedWatch+uint64(client))})}
}

func (w watch) join() watched {
	if w.guard == nil {
		return watched{}
	}
	e := w.guard.New()
	e.Join()
	if w.peers == nil {
		return watched{guard: e}
	}
	return watched{guard: e, peer: w.peers.Join(e)}
}

func (e watched) leave() {
	if e.peer != nil {
		e.peer.Leave()
	}
	if e.guard != nil {
		e.guard.Leave()
	}
}

// asks leaves e alone for as long as an answer asks for, as package balance does within its bounds.
func (e *endpoint) asks(now, pause int64) {
	if pause == 0 {
		return
	}
	e.alone = max(e.alone, now+pause)
	if e.guard != nil && e.peer == nil {
		e.guard.Eject(time.UnixMicro(now), eject.Overload, time.UnixMicro(now+min(pause, mostPause)))
	}
}

// mostPause is package balance's MaxRetryAfter.
const mostPause = 30 * Second

// returns lets e start slowly if it was passed over before.
func (e *endpoint) returns(now int64) {
	if e.away && e.guard.Grade(time.UnixMicro(now)) != eject.Out {
		e.away = false
		e.load.Back(now)
	}
}

// end tells of the end of a call.
func (e watched) end(now int64, mark load.Mark, class load.Class) {
	if e.peer == nil {
		return
	}
	kind := belfry.Ignored
	switch class {
	case load.Success:
		kind = belfry.Success
	case load.Failure:
		kind = belfry.Failure
	case load.Cancelled, load.Rejected:
	}
	e.peer.End(time.UnixMicro(now), time.Duration(now-mark.Start)*time.Microsecond, kind)
}

// ejectFirst takes servers out for good, without asking.
func (w *world) ejectFirst() {
	for i := range w.clients {
		for _, ep := range w.clients[i].ends {
			if int(ep.server) < w.cfg.Out {
				ep.guard.Force(time.UnixMicro(0), eject.Health, time.UnixMicro(Never))
			}
		}
	}
}

// betterIn is what package balance does while endpoints are ejected.
func betterIn(w *world, c *client, now int64) int {
	at := time.UnixMicro(now)
	if c.watch.guard == nil || !c.watch.guard.Any(at) {
		w.missed = false
		return better(w, c, now)
	}
	effort := w.cfg.Effort
	if effort == 0 {
		effort = pick.Effort
	}
	out := func(i int) bool {
		if c.ends[i].guard.Grade(at) != eject.Out {
			return false
		}
		c.ends[i].away = c.watch.peers == nil
		return true
	}
	first, second, missed := pick.BetterIn(now, w.source, c.set, nil, out, effort)
	if w.missed = missed; !missed {
		return first
	}
	rest := pick.NewRest(now, w.source, c.set, first, second, nil)
	for i := rest.Next(); i != pick.None; i = rest.Next() {
		if !out(i) {
			return i
		}
	}
	return pick.None
}
