package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/belfry-go/belfry/load"
)

// A change is a server, or a connection, that comes or goes.
type change struct {
	at     int64
	name   int32 // of the endpoint
	server int32
	client int32 // or everyone
	leaves bool
}

// everyone is the client of a change that all take part in.
const everyone = -1

func changesOf(cfg Config) []change {
	var all []change
	if cfg.Behind != nil {
		for i := range max(cfg.Clients, 1) {
			all = cfg.Behind.connect(all, cfg, int32(i))
		}
	} else {
		all = arrivals(cfg)
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	return all
}

// arrivals is servers that come and go, to which connections are opened first if they are to be warm.
func arrivals(cfg Config) []change {
	var all []change
	for i, s := range cfg.Servers {
		for _, span := range s.here() {
			ready := span.From
			if ready > 0 && cfg.Warm > 0 {
				ready += cfg.Handshake
			}
			all = append(all, change{ready, int32(i), int32(i), everyone, false}, change{span.Until, int32(i), int32(i), everyone, true})
		}
	}
	return all
}

func (s *Server) here() []Span {
	if s.Here == nil {
		return []Span{{0, Never}}
	}
	return s.Here
}

// Behind is an address with several servers behind it, which gives each connection to one of them at random, with which it stays. Connections are made and
// rotated at such times as package discover's Connections says; calls on an old one end where they are.
type Behind struct {
	PerAddress  int
	RotateEvery int64   // 0 means never
	Jitter      float64 // as there, but 0 means 0
}

const seedBehind = 50

// connect adds the connections of a client.
func (b *Behind) connect(all []change, cfg Config, client int32) []change {
	random := rand.New(rand.NewPCG(cfg.Seed, seedBehind+uint64(client)))
	name := int32(b.PerAddress)
	held := make([]change, b.PerAddress)
	for i := range held {
		held[i] = change{0, int32(i), serverAt(cfg.Servers, 0, random), client, false}
		all = append(all, held[i])
	}
	if b.RotateEvery == 0 {
		return all
	}
	apart := float64(b.RotateEvery) / float64(b.PerAddress)
	at, slot := int64((1-random.Float64())*apart), 0
	for ; at < cfg.Horizon; at += int64((1 - b.Jitter*random.Float64()) * apart) {
		old := held[slot]
		old.at, old.leaves = at, true
		held[slot] = change{at, name, serverAt(cfg.Servers, at, random), client, false}
		all = append(all, held[slot], old)
		name++
		slot = (slot + 1) % b.PerAddress
	}
	return all
}

// serverAt draws one of the servers that are there.
func serverAt(servers []Server, now int64, random *rand.Rand) int32 {
	var there []int32
	for i := range servers {
		if within(servers[i].here(), now) {
			there = append(there, int32(i))
		}
	}
	return there[random.IntN(len(there))]
}

// A past is what was measured of an endpoint that has left, as package balance remembers it.
type past struct {
	name        int32
	load        load.Rejoiner
	left, until int64
}

// enrol returns the load of who comes: what was measured when it was there before, if that is remembered.
func (c *client) enrol(next change) load.Endpoint {
	i := slices.IndexFunc(c.past, func(p past) bool { return p.name == next.name && next.at < p.until })
	if i < 0 {
		return c.fleet.Join(strconv.Itoa(int(next.name)), next.at)
	}
	p := c.past[i]
	c.past = slices.Delete(c.past, i, i+1)
	p.load.Rejoin(p.left, next.at)
	return p.load
}

// part takes the load of ep out of the fleet, and remembers it.
func (c *client) part(ep *endpoint, now, remember int64) {
	ep.load.Leave()
	c.past = slices.DeleteFunc(c.past, func(p past) bool { return p.until <= now })
	if known, ok := ep.load.(load.Rejoiner); ok && remember > 0 {
		c.past = append(c.past, past{ep.name, known, now, now + remember})
	}
}

// opens takes an idle connection, or reports that one has to be opened.
func (e *endpoint) opens(handshake int64) bool {
	if handshake == 0 {
		return false
	}
	if e.idle > 0 {
		e.idle--
		return false
	}
	return true
}
