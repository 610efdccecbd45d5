// Package sim sends requests through the code that balancers run, in virtual time: package pick chooses, package load says what an
// endpoint costs. There is no clock and no goroutine, and three random sources (when requests come, how long they
// take, what is drawn), so that a run is determined by its seed and all policies meet the same requests.
//
// Times are microseconds since the run began, in an int64.
package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/belfry-go/belfry/internal/pick"
	"github.com/belfry-go/belfry/load"
)

// Units of time.
const (
	Millisecond = int64(1000)
	Second      = 1000 * Millisecond
	// Never is later than all that happens.
	Never = math.MaxInt64 / 4
)

// Config is what is simulated: servers, clients that know only of their own requests, and when requests come.
type Config struct {
	Servers []Server
	// Clients is how many there are; 0 means one. Each request comes from one of them at random.
	Clients int
	// Rate is how many requests come per second, all clients together, at random times; or at equal distances if Even.
	Rate float64
	Even bool
	// Concurrency is how many requests are in flight always, in place of a Rate: whoever is answered asks again. They end
	// after so many Requests.
	Concurrency, Requests int
	// Arrivals are when requests come, in rising order, in place of both.
	Arrivals []int64
	// Horizon is when the last request comes, for a Rate.
	Horizon int64
	// Timeout is when a caller leaves. 0 means never.
	Timeout int64
	// Probe is how long a probe takes to be answered, for policies that probe; 0 means 1 ms. ProbeWork is how much work it is for a queue;
	// 0 means 100 µs.
	Probe, ProbeWork int64
	// Streams is how many responses each client has open at each server from the beginning on: their calls were
	// answered, and they stay in flight.
	Streams []int
	// Out is how many servers, the first, are ejected from the beginning on, for policies that look; Effort how many pairs they draw. 0 means
	// as many as package balance does.
	Out, Effort int
	// Remember is for how long what was measured of a server is remembered when clients no longer know of it, as package balance does. 0 means
	// not at all.
	Remember int64
	// Handshake is how long it takes to open a connection, for servers that are no queues: each request has one for itself, and opens it unless
	// its client has an idle one. Warm is how many are opened to a server that comes before requests are sent to it.
	Handshake int64
	Warm      int
	// Behind says that clients do not choose servers but connections to an address, with the servers behind it. Nil means that they choose servers.
	Behind *Behind

	Policy Policy
	Seed   uint64
}

// A Request is what became of one.
type Request struct {
	At      int64
	Latency int64 // Never or more: it got no answer
	Server  int32 // -1: there was none
	Crowded int16 // how many servers had five requests or more when it came
	Class   load.Class
	Missed  bool // all that was drawn was ejected
	Opened  bool // it waited for a connection
	Early   bool // the server had asked its client to be left alone
}

// Answered reports whether the request ever came back.
func (r Request) Answered() bool { return r.Latency < Never }

// Good reports whether it got the answer that it was for.
func (r Request) Good() bool { return r.Answered() && r.Class == load.Success }

// Run returns all requests, in the order of their coming.
func Run(cfg Config) []Request {
	w := newWorld(cfg)
	switch {
	case cfg.Arrivals != nil:
		w.given()
	case cfg.Concurrency > 0:
		w.closed()
	default:
		w.open()
	}
	return w.requests
}

// A world is one run.
type world struct {
	cfg      Config
	arrivals *rand.Rand
	service  *rand.Rand
	source   rand.Source // what is drawn to choose

	servers  []server
	crowded  int16 // servers with as many requests as a crowd, or more
	clients  []client
	events   events
	calls    []call
	unused   []int32
	changes  []change
	requests []Request
	missed   bool // the latest choice
}

// A client has its own view of the servers.
type client struct {
	fleet   load.Fleet
	chooser load.Chooser // fleet, if it is one
	set     []*pick.Endpoint
	ends    []*endpoint // of the same indexes
	past    []past
	turn    int
	watch   watch
}

type endpoint struct {
	pick.Endpoint
	load     load.Endpoint
	reporter load.Reporter // load, if it is one
	name     int32         // that of the server, or of the connection
	server   int32
	idle     int // connections
	watched
}

// A call is one in flight.
type call struct {
	endpoint *endpoint
	mark     load.Mark
	class    load.Class
	report   load.Report // of a probe, which is no call
	probe    bool
	before   int   // requests that were at the server before it
	at       int64 // when it came
	pause    int64 // what its answer asks for
}

// One source for each purpose: so one more draw here moves nothing there.
const (
	seedArrivals = iota + 1
	seedService
	seedPicks
)

func newWorld(cfg Config) *world {
	cfg.Clients = max(cfg.Clients, 1)
	if cfg.Probe == 0 {
		cfg.Probe = Millisecond
	}
	if cfg.ProbeWork == 0 {
		cfg.ProbeWork = Millisecond / 10
	}
	w := &world{
		cfg:      cfg,
		arrivals: rand.New(rand.NewPCG(cfg.Seed, seedArrivals)),
		service:  rand.New(rand.NewPCG(cfg.Seed, seedService)),
		source:   rand.NewPCG(cfg.Seed, seedPicks),
		servers:  make([]server, len(cfg.Servers)),
		clients:  make([]client, cfg.Clients),
		changes:  changesOf(cfg),
	}
	for i, s := range cfg.Servers {
		w.servers[i].Server = s
	}
	w.requests = make([]Request, 0, max(cfg.Requests, len(cfg.Arrivals), int(cfg.Rate*float64(cfg.Horizon)/1e6*1.02)))
	metric := cfg.Policy.metric(w)
	for i := range w.clients {
		w.clients[i].fleet = metric.Fleet()
		w.clients[i].chooser, _ = w.clients[i].fleet.(load.Chooser)
		w.clients[i].turn = -1
		w.clients[i].watch = newWatch(cfg.Policy, cfg.Seed, i)
	}
	w.change(0)
	w.ejectFirst()
	w.openStreams()
	return w
}

// open lets requests come by rate.
func (w *world) open() {
	gap := 1e6 / w.cfg.Rate
	for at := 0.0; ; {
		if w.cfg.Even {
			at += gap
		} else {
			at += w.arrivals.ExpFloat64() * gap
		}
		now := int64(at)
		if now >= w.cfg.Horizon {
			return
		}
		w.come(now)
	}
}

// given lets requests come when they are said to.
func (w *world) given() {
	for _, at := range w.cfg.Arrivals {
		w.come(at)
	}
}

// come sends a request, after all that happened before.
func (w *world) come(now int64) {
	w.finish(now)
	w.change(now)
	w.send(now, w.anyClient())
}

// closed keeps a number of requests in flight.
func (w *world) closed() {
	for range min(w.cfg.Concurrency, w.cfg.Requests) {
		w.send(0, w.anyClient())
	}
	for w.events.len() > 0 && len(w.requests) < w.cfg.Requests {
		now, answered := w.end()
		if !answered {
			continue
		}
		w.change(now)
		w.send(now, w.anyClient())
	}
}

func (w *world) anyClient() *client {
	if len(w.clients) == 1 {
		return &w.clients[0]
	}
	return &w.clients[w.arrivals.IntN(len(w.clients))]
}

// finish lets all calls come back that do so until now.
func (w *world) finish(now int64) {
	for w.events.len() > 0 && w.events.first().at <= now {
		w.end()
	}
}

// end lets the next call or probe come back, and returns when that is, and whether it was a call.
func (w *world) end() (at int64, answered bool) {
	e := w.events.pop()
	c := &w.calls[e.call]
	w.unused = append(w.unused, e.call)
	if c.probe {
		c.endpoint.reporter.Report(e.at, c.report)
		return e.at, false
	}
	if c.endpoint.reporter != nil {
		g := &w.servers[c.endpoint.server].gauge
		c.endpoint.reporter.Report(e.at, g.Report())
		g.End(c.before, time.Duration(e.at-c.at)*time.Microsecond)
	}
	w.leave(c.endpoint.server)
	c.endpoint.load.End(e.at, c.mark, c.class)
	c.endpoint.end(e.at, c.mark, c.class)
	c.endpoint.asks(e.at, c.pause)
	c.endpoint.idle++
	c.endpoint.Finish()
	return e.at, true
}

// send gives a request of c to one of the servers.
func (w *world) send(now int64, c *client) {
	i := w.cfg.Policy.choose(w, c, now)
	if i == pick.None {
		w.requests = append(w.requests, Request{At: now, Server: -1, Class: load.Failure})
		return
	}
	ep := c.ends[i]
	ep.Hold()
	ep.Begin()
	ep.returns(now)
	mark := ep.load.Start(now)
	s := &w.servers[ep.server]
	crowded := w.crowded
	w.enter(ep.server)
	before := 0
	if ep.reporter != nil {
		before = s.gauge.Begin()
	}
	opened := ep.opens(w.cfg.Handshake)
	begins := now
	if opened {
		begins += w.cfg.Handshake
	}
	at, class := s.serve(begins, w.service)
	if t := w.cfg.Timeout; t > 0 && at-now > t {
		at, class = now+t, load.Cancelled
	}
	w.requests = append(w.requests, Request{
		At: now, Latency: at - now, Server: ep.server, Crowded: crowded, Class: class, Missed: w.missed, Opened: opened, Early: now < ep.alone,
	})
	if at < Never {
		w.events.push(at, w.keep(call{endpoint: ep, mark: mark, class: class, before: before, at: now, pause: s.asksFor(begins, class)}))
	}
	w.probe(now, c)
}

// probe sends the probes that c wants to. What they say is as it is now, and they are worked on before anything that waits.
func (w *world) probe(now int64, c *client) {
	if c.chooser == nil {
		return
	}
	for measured := c.chooser.Probe(now, w.source); measured != nil; measured = c.chooser.Probe(now, w.source) {
		ep := c.of(measured)
		s := &w.servers[ep.server]
		s.free = max(s.free, now) + w.cfg.ProbeWork
		w.events.push(now+w.cfg.Probe, w.keep(call{endpoint: ep, report: s.gauge.Report(), probe: true}))
	}
}

// of returns the endpoint whose load is measured.
func (c *client) of(measured load.Endpoint) *endpoint {
	for _, ep := range c.ends {
		if ep.load == measured {
			return ep
		}
	}
	return nil
}

// crowd is how many requests a server has that counts as crowded.
const crowd = 5

func (w *world) enter(i int32) {
	if w.servers[i].inside++; w.servers[i].inside == crowd {
		w.crowded++
	}
}

func (w *world) leave(i int32) {
	if w.servers[i].inside--; w.servers[i].inside == crowd-1 {
		w.crowded--
	}
}

// keep returns the place of c among the calls in flight.
func (w *world) keep(c call) int32 {
	if last := len(w.unused) - 1; last >= 0 {
		place := w.unused[last]
		w.unused = w.unused[:last]
		w.calls[place] = c
		return place
	}
	w.calls = append(w.calls, c)
	return int32(len(w.calls) - 1)
}

func (w *world) openStreams() {
	for i, n := range w.cfg.Streams {
		for c := range w.clients {
			ep := w.clients[c].ends[i]
			for range n {
				ep.Hold()
				ep.Begin()
				ep.load.End(0, ep.load.Start(0), load.Success)
			}
		}
	}
}

// change lets servers come and go that do so until now.
func (w *world) change(now int64) {
	for len(w.changes) > 0 && w.changes[0].at <= now {
		next := w.changes[0]
		w.changes = w.changes[1:]
		for i := range w.clients {
			switch {
			case next.client != everyone && next.client != int32(i):
			case next.leaves:
				w.clients[i].leave(next, w.cfg.Remember)
			default:
				w.clients[i].join(next, w.cfg.Warm)
			}
		}
	}
}

func (c *client) join(next change, warm int) {
	ep := &endpoint{name: next.name, server: next.server, load: c.enrol(next), idle: warm}
	ep.reporter, _ = ep.load.(load.Reporter)
	ep.Init(ep.load)
	ep.watched = c.watch.join()
	c.ends = append(c.ends, ep)
	c.set = append(c.set, &ep.Endpoint)
}

func (c *client) leave(next change, remember int64) {
	for i, ep := range c.ends {
		if ep.name == next.name {
			c.part(ep, next.at, remember)
			ep.watched.leave()
			ep.Retire()
			c.ends = append(c.ends[:i:i], c.ends[i+1:]...)
			c.set = append(c.set[:i:i], c.set[i+1:]...)
			return
		}
	}
}
