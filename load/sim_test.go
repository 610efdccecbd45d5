package load_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/belfry-go/belfry/internal/pick"
	"github.com/belfry-go/belfry/load"
)

// A simulation sends requests through the picker that balancers use, in virtual time: no clock, no goroutine, one random
// source.
type simulation struct {
	rand    *rand.Rand
	source  rand.Source
	metric  load.Metric // nil: endpoints are drawn at random
	clients int
	servers int
	rate    float64 // requests per second, Poisson, over all clients
	seconds float64
	// serve says how long server i takes for a request that begins at now, in µs, and how it ends. A negative time
	// is for ever.
	serve func(i int, now int64) (took int64, class load.Class)
	fifo  bool // one request at a time, in order

	events   events
	order    int
	free     []int64 // when the queue of a fifo server is empty
	fleets   [][]*pick.Endpoint
	loads    [][]load.Endpoint
	requests []request
}

type request struct {
	server  int
	at      int64
	latency int64 // -1: never
	class   load.Class
}

// An event is the end of a call.
type event struct {
	at             int64
	order          int
	client, server int
	mark           load.Mark
	class          load.Class
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

func (s *simulation) run() {
	s.source = rand.NewPCG(seed, 1)
	s.rand = rand.New(rand.NewPCG(seed, 2))
	s.clients = max(s.clients, 1)
	s.free = make([]int64, s.servers)
	for range s.clients {
		s.join()
	}
	end := int64(s.seconds * 1e6)
	for now := int64(0); ; {
		now += int64(s.rand.ExpFloat64() / s.rate * 1e6)
		if now >= end {
			return
		}
		s.finish(now)
		s.send(now, s.rand.IntN(s.clients))
	}
}

// join makes one client's view of the servers.
func (s *simulation) join() {
	metric := s.metric
	if metric == nil {
		metric = load.Constant(nil)
	}
	fleet := metric.Fleet()
	loads := make([]load.Endpoint, s.servers)
	set := make([]*pick.Endpoint, s.servers)
	for i := range s.servers {
		loads[i], set[i] = fleet.Join("", 0), new(pick.Endpoint)
		set[i].Init(loads[i])
	}
	s.loads = append(s.loads, loads)
	s.fleets = append(s.fleets, set)
}

// finish lets all calls come back that do so until now.
func (s *simulation) finish(now int64) {
	for len(s.events) > 0 && s.events[0].at <= now {
		e := heap.Pop(&s.events).(event)
		s.loads[e.client][e.server].End(e.at, e.mark, e.class)
		s.fleets[e.client][e.server].Finish()
	}
}

func (s *simulation) send(now int64, client int) {
	i, _ := pick.Better(now, s.source, s.fleets[client], nil)
	s.begin(now, client, i)
}

func (s *simulation) begin(now int64, client, i int) {
	ep := s.fleets[client][i]
	ep.Hold()
	ep.Begin()
	mark := s.loads[client][i].Start(now)
	took, class := s.serve(i, now)
	if took < 0 {
		s.requests = append(s.requests, request{i, now, -1, class})
		return
	}
	at := now + took
	if s.fifo {
		at = max(now, s.free[i]) + took
		s.free[i] = at
	}
	s.requests = append(s.requests, request{i, now, at - now, class})
	s.order++
	heap.Push(&s.events, event{at, s.order, client, i, mark, class})
}

// share is the part of the requests that keep.
func (s *simulation) share(keep func(request) bool) float64 {
	n := 0
	for _, r := range s.requests {
		if keep(r) {
			n++
		}
	}
	return float64(n) / float64(len(s.requests))
}

// mean is the mean latency in µs of the requests after warm-up.
func (s *simulation) mean() float64 {
	sum, n := 0.0, 0
	for _, r := range s.requests[len(s.requests)/10:] {
		if r.latency >= 0 {
			sum += float64(r.latency)
			n++
		}
	}
	return sum / float64(n)
}

func (s *simulation) percentile(p float64) int64 {
	var all []int64
	for _, r := range s.requests {
		if r.latency >= 0 {
			all = append(all, r.latency)
		}
	}
	slices.Sort(all)
	return all[min(int(p*float64(len(all))), len(all)-1)]
}

// odd are the requests to server 0, which is the odd one out where there is one.
func odd(r request) bool { return r.server == 0 }

// seed is fixed: the bounds below are wide, and a failure can be run again.
const seed = 1

func between(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	t.Logf("seed %d: %s: %.4g", seed, what, got)
	if got < low || got > high {
		t.Errorf("%s is %.4g, want %v to %v", what, got, low, high)
	}
}

// quick answers after 20 ms.
func quick(int, int64) (int64, load.Class) { return 20_000, load.Success }

// TestSimulateOneStuck: one request never comes back; its endpoint answers all others.
func TestSimulateOneStuck(t *testing.T) {
	for _, c := range []struct {
		servers   int
		rate      float64
		low, high float64
	}{ // a prototype had 0.371, 0.250, 0.039; 0.161, 0.089, 0.012; without the two exceptions all are 0
		{2, 200, 0.30, 0.45},
		{3, 200, 0.19, 0.30},
		{10, 200, 0.025, 0.08},
		{2, 20, 0.10, 0.25},
		{3, 20, 0.04, 0.12},
		{10, 20, 0.004, 0.025},
	} {
		stuck := false
		s := simulation{metric: load.PeakEWMA{}, servers: c.servers, rate: c.rate, seconds: 120}
		s.serve = func(i int, now int64) (int64, load.Class) {
			if i == 0 && !stuck {
				stuck = true
				return -1, load.Success
			}
			return quick(i, now)
		}
		s.run()
		between(t, fmt.Sprintf("share of the endpoint with the stuck request, of %d at %v/s", c.servers, c.rate), s.share(odd), c.low, c.high)
	}
}

// TestSimulateBlackHole: one endpoint never answers.
func TestSimulateBlackHole(t *testing.T) {
	for _, c := range []struct {
		servers int
		most    float64
	}{{2, 12}, {3, 9}, {10, 8}} { // a prototype stranded 9, 6 and 6, without evidence 1784, 1283 and 548
		s := simulation{metric: load.PeakEWMA{}, servers: c.servers, rate: 200, seconds: 60, serve: func(i int, now int64) (int64, load.Class) {
			if i == 0 {
				return -1, load.Success
			}
			return quick(i, now)
		}}
		s.run()
		stranded := s.share(odd) * float64(len(s.requests))
		between(t, fmt.Sprintf("requests stranded in a minute, with %d endpoints", c.servers), stranded, 5, c.most)
	}
}

// TestSimulateHanging: one request in five of one endpoint never comes back.
func TestSimulateHanging(t *testing.T) {
	s := simulation{metric: load.PeakEWMA{}, servers: 3, rate: 200, seconds: 60}
	s.serve = func(i int, now int64) (int64, load.Class) {
		if i == 0 && s.rand.IntN(5) == 0 {
			return -1, load.Success
		}
		return quick(i, now)
	}
	s.run()
	lost := s.share(func(r request) bool { return r.latency < 0 }) * float64(len(s.requests))
	between(t, "requests that hang", lost, 1, 9) // a prototype lost 4, the classic average 13
}

// TestSimulateSlowServer: of eleven servers one is ten times slower for half the time.
func TestSimulateSlowServer(t *testing.T) {
	const from, until = 15e6, 45e6
	run := func(metric load.Metric) *simulation {
		s := &simulation{metric: metric, servers: 11, rate: 1000, seconds: 60}
		s.serve = func(i int, now int64) (int64, load.Class) {
			took := int64(60_000 + s.rand.IntN(120_000))
			if i == 5 && now >= from && now < until {
				took *= 10
			}
			return took, load.Success
		}
		s.run()
		return s
	}
	late := func(r request) bool { return r.latency > 1e6 }
	random, pending, peak := run(nil), run(load.Pending{}), run(load.PeakEWMA{})
	between(t, "share over 1 s at random", random.share(late), 0.02, 0.05)
	between(t, "share over 1 s by requests in flight", pending.share(late), 0.002, 0.01)
	between(t, "share over 1 s by Peak EWMA", peak.share(late), 0, 0.0008)
	between(t, "median in ms by Peak EWMA", float64(peak.percentile(0.5))/1000, 115, 125)
	between(t, "99.9 % in ms by Peak EWMA", float64(peak.percentile(0.999))/1000, 175, 200)
	between(t, "99.9 % in ms by requests in flight", float64(pending.percentile(0.999))/1000, 1000, 1800)
	back := func(r request) bool { return r.server == 5 && r.at > 55e6 }
	between(t, "share of the last 5 s that the slow server gets back", peak.share(back)*12, 0.01, 0.11)
}

// TestSimulateFastFailures: of ten servers one fails at once, the others take 50 ms.
func TestSimulateFastFailures(t *testing.T) {
	run := func(metric load.Metric) float64 {
		s := simulation{metric: metric, servers: 10, rate: 1000, seconds: 60, serve: func(i int, _ int64) (int64, load.Class) {
			if i == 0 {
				return 1000, load.Failure
			}
			return 50_000, load.Success
		}}
		s.run()
		return s.share(odd)
	}
	between(t, "D2 share of the failing server by requests in flight", run(load.Pending{}), 0.15, 0.21)
	between(t, "D2 share of the failing server by Peak EWMA", run(load.PeakEWMA{}), 0, 0.002)
}

// TestSimulateCancels: callers of a slow endpoint leave after 100 ms.
func TestSimulateCancels(t *testing.T) {
	s := simulation{metric: load.PeakEWMA{}, servers: 10, rate: 1000, seconds: 60, serve: func(i int, now int64) (int64, load.Class) {
		if i == 0 {
			return 100_000, load.Cancelled
		}
		return quick(i, now)
	}}
	s.run()
	between(t, "share of the endpoint that never answers in time", s.share(odd), 0, 0.03)
}

// TestSimulateQueues: a hundred queues, ten clients that know only of their own requests, a load of 0.9 or 0.7. Times are means in service times.
func TestSimulateQueues(t *testing.T) {
	const unit = 20_000.0
	for _, c := range []struct {
		name      string
		slow      func(i int) float64
		load      float64
		low, high float64
	}{ // a prototype had 4.18, 6.88 and 4.20; the classic average 5.77, 17.9 and more than 1500
		{"equal", func(int) float64 { return 1 }, 0.9, 3.6, 4.7},
		{"half of them 2x slower", func(i int) float64 { return float64(1 + i%2) }, 0.9, 5.8, 8.2},
		{"a tenth 10x slower", func(i int) float64 { return map[bool]float64{true: 10, false: 1}[i%10 == 0] }, 0.7, 3.5, 4.8},
	} {
		capacity := 0.0
		for i := range 100 {
			capacity += 1e6 / unit / c.slow(i)
		}
		s := simulation{
			metric: load.PeakEWMA{Decay: 10 * 20 * ms}, clients: 10, servers: 100, fifo: true,
			rate: c.load * capacity, seconds: 600 * unit / 1e6,
		}
		s.serve = func(i int, _ int64) (int64, load.Class) {
			return int64(s.rand.ExpFloat64() * unit * c.slow(i)), load.Success
		}
		s.run()
		between(t, c.name, s.mean()/unit, c.low, c.high)
	}
}
