package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/internal/pick"
	"github.com/belfry-go/belfry/load"
)

// Placed is servers that differ in where they are and in what they are for, one client, and requests that differ in size and key. Servers may
// refuse, and what fails is tried again.
type Placed struct {
	Sites []Site
	// Zone is where the client is, for locality; empty for none.
	Zone     string
	Rate     float64
	Horizon  int64
	Attempts int // of a request; 0 means one
	// Tried says what later attempts know.
	Tried Knowledge
	// Size draws how many times as long a request takes as an ordinary one. Counted says that the balancer is told, too.
	Size    func(*rand.Rand) float64
	Counted bool
	// Key draws the key of a request, nil if there are none; Bound is that of keys.
	Key    func(*rand.Rand) uint64
	Bound  float64
	Metric load.Metric
	Seed   uint64
}

// Knowledge is what later attempts know about earlier ones.
type Knowledge uint8

// What later attempts know.
const (
	Nothing   Knowledge = iota
	Endpoints           // which were tried
	Places              // and where those are
)

// A Site is a server.
type Site struct {
	pick.Traits
	Latency Latency
	Queue   bool
	Refuses []Span // has no room
	Fails   []Span // answers with a failure at once
	Slow    Window
}

// A Visit is what became of a request.
type Visit struct {
	At, Latency int64
	Site        int32 // the last, -1 if all refused
	Attempts    int
	Good        bool
	Key         uint64
	Share       float64 // of all work in flight, that of the site when the request came there, in means of the sites
}

type visit struct {
	Visit
	tried *attempt.Set
	size  float64
	extra int
	mark  load.Mark
}

type placed struct {
	Placed
	service *rand.Rand
	source  rand.Source
	ends    []*endpoint
	set     []*pick.Endpoint
	groups  *pick.Groups
	free    []int64
	events  events
	visits  []visit
}

// Run returns all requests in the order of their coming.
func (p Placed) Run() []Visit {
	arrivals := rand.New(rand.NewPCG(p.Seed, seedArrivals))
	w := &placed{Placed: p, service: rand.New(rand.NewPCG(p.Seed, seedService)), source: rand.NewPCG(p.Seed, seedPicks), free: make([]int64, len(p.Sites))}
	fleet := p.Metric.Fleet()
	for i, s := range p.Sites {
		ep := &endpoint{server: int32(i), load: fleet.Join(fmt.Sprint(i), 0)}
		ep.Init(ep.load)
		s.Near = s.Zone != "" && s.Zone == p.Zone
		s.ID = pick.HashOf(fmt.Sprint("site ", i))
		if p.Tried != Places {
			s.Host = ""
			if p.Zone == "" {
				s.Zone = ""
			}
		}
		ep.Characterise(s.Traits)
		ep.Hint(true)
		w.ends, w.set = append(w.ends, ep), append(w.set, &ep.Endpoint)
	}
	w.groups = pick.NewGroups(w.set, nil, 2)
	for at := 0.0; ; {
		at += arrivals.ExpFloat64() * 1e6 / p.Rate
		now := int64(at)
		if now >= p.Horizon {
			break
		}
		w.finish(now)
		v := visit{Visit: Visit{At: now, Site: -1}, size: 1, tried: new(attempt.Set)}
		if p.Size != nil {
			v.size = p.Size(w.service)
		}
		if p.Key != nil {
			v.Key = p.Key(w.service)
		}
		w.visits = append(w.visits, v)
		w.send(now, int32(len(w.visits)-1))
	}
	w.finish(Never)
	all := make([]Visit, len(w.visits))
	for i, v := range w.visits {
		all[i] = v.Visit
	}
	return all
}

func (w *placed) finish(now int64) {
	for w.events.len() > 0 && w.events.first().at <= now {
		e := w.events.pop()
		v := &w.visits[e.call]
		ep := w.ends[v.Site]
		class := load.Success
		if !v.Good {
			class = load.Failure
		}
		ep.load.End(e.at, v.mark, class)
		ep.Burden(-v.extra)
		ep.Finish()
		ep.Hint(true)
		v.Latency = e.at - v.At
		if !v.Good && v.Attempts < w.Attempts {
			w.send(e.at, e.call)
		}
	}
}

// send makes an attempt.
func (w *placed) send(now int64, call int32) {
	v := &w.visits[call]
	i := w.ask(now, v)
	if i == pick.None {
		v.Site, v.Good = -1, false
		return
	}
	ep := w.ends[i]
	sum := 0
	for _, e := range w.set {
		sum += e.Work()
	}
	v.extra = 0
	if w.Counted {
		v.extra = int(v.size+0.5) - 1
	}
	ep.Hold()
	ep.Begin()
	ep.Burden(v.extra)
	v.mark = ep.load.Start(now)
	v.Site = int32(i)
	v.Attempts++
	v.tried.Add(w.set[i])
	v.Share = float64(ep.Work()) * float64(len(w.set)) / float64(sum+1)
	w.events.push(w.serve(now, v), call)
}

// serve returns when the attempt is over.
func (w *placed) serve(now int64, v *visit) int64 {
	s := &w.Sites[v.Site]
	took := int64(s.Latency(w.service)*v.size + 0.5)
	if s.Slow.Has(now) {
		took = int64(float64(took) * s.Slow.Slow)
	}
	if v.Good = !within(s.Fails, now); !v.Good {
		return now + 1000
	}
	begins := now
	if s.Queue {
		begins = max(now, w.free[v.Site])
		w.free[v.Site] = begins + took
	}
	return begins + took
}

func within(spans []Span, now int64) bool {
	for _, s := range spans {
		if s.Has(now) {
			return true
		}
	}
	return false
}

// ask returns the first site that does not refuse.
func (w *placed) ask(now int64, v *visit) int {
	var tried *attempt.Set
	if v.Attempts > 0 && w.Tried != Nothing {
		tried = v.tried
	}
	var next func() int
	if w.Key != nil {
		r := w.groups.Rank(now, w.source, v.Key, w.Bound, tried)
		next = r.Next
	} else {
		t := w.groups.Begin(now, w.source, tried)
		next = t.Next
	}
	for i := next(); i != pick.None; i = next() {
		if !within(w.Sites[i].Refuses, now) {
			return i
		}
		w.set[i].Hint(false)
	}
	return pick.None
}

// Classes makes picks of idle endpoints of these weights, and returns how many each got.
func Classes(weights []int, picks int, seed uint64) []int {
	var set []*pick.Endpoint
	fleet := load.Pending{}.Fleet()
	for i, n := range weights {
		e := new(pick.Endpoint)
		e.Init(fleet.Join(fmt.Sprint(i), 0))
		e.Characterise(pick.Traits{Weight: n})
		e.Hint(true)
		set = append(set, e)
	}
	g, source, counts := pick.NewGroups(set, nil, 2), rand.NewPCG(seed, seedPicks), make([]int, len(weights))
	for range picks {
		t := g.Begin(0, source, nil)
		counts[t.Next()]++
	}
	return counts
}
