package load

import (
	"fmt"
	"sync"
	"time"
)

// PeakEWMA measures how long a success would take, in microseconds, times the requests in flight and this one:
//
//	max(peak average, 2 × mean age of the evidence, 1 µs) × attempts until a success × (in flight + 1)
//
// The average rises to a longer sample at once and falls slowly, after Finagle's Peak EWMA. Three things are different.
//
// What is in flight is evidence. A request seen at a random moment is on average halfway through, hence twice the mean age. Only
// calls that have not come back count, and only while no later one has overtaken them: one stuck request says little
// about an endpoint that answers all others. Evidence is left out of the cost, so that the endpoint is tried once
// more, when nothing was started there for 20 times its average or 10 s, whichever is longer.
//
// How a call ended counts. Only a success can lower the average. A failure raises it to at least the median of the
// fleet, and counts against the endpoint: attempts until a success is one over the share of successes, where older
// calls weigh less and a tenth of a success is taken for granted. A cancelled call is a lower bound, and one that was never sent
// is nothing.
//
// A newcomer is taken to be like the median of its peers. Until its first answer, a second request to it costs ten times as
// much; that ends by itself after ten medians, or 1 s if that is longer. While nobody in the fleet has answered yet, all are
// taken to need Initial.
//
// The zero value is ready to use.
type PeakEWMA struct {
	// Decay is how long the average takes to fall to 1/e of its way. 0 means 10 s.
	Decay time.Duration
	// Initial is the latency of endpoints before any has answered. 0 means 30 ms.
	Initial time.Duration
}

var _ Metric = PeakEWMA{}

const (
	// minCost keeps the count of requests in flight from being multiplied by nothing: coarse clocks and
	// long idle times do measure 0.
	minCost          = 1
	retryAfter       = 10 * second // evidence is left out when nothing was started for so long,
	retryAfterPeaks  = 20          // and for so many averages
	newcomerFactor   = 10          // what a second request to a newcomer costs more,
	newcomerFor      = second      // until so long after the first,
	newcomerForPeaks = 10          // and so many medians
)

// Validate says which field is out of range.
func (p PeakEWMA) Validate() error {
	switch {
	case p.Decay < 0:
		return fmt.Errorf("load: decay must not be negative, got %v", p.Decay)
	case p.Initial < 0:
		return fmt.Errorf("load: initial must not be negative, got %v", p.Initial)
	}
	return nil
}

// Fleet begins a fleet in which nobody has answered yet.
func (p PeakEWMA) Fleet() Fleet {
	f := &peakFleet{decay: decayOver(orElse(p.Decay, 10*time.Second)), initial: micros(p.Initial)}
	if p.Initial == 0 {
		f.initial = 30_000
	}
	return f
}

type peakFleet struct {
	decay
	initial  float64
	averages histogram
}

func (f *peakFleet) Timed() bool { return true }

func (f *peakFleet) Join(_ string, now int64) Endpoint {
	return &peak{fleet: f, born: now, place: nowhere}
}

// typical is the median of those who have answered, Initial if nobody has.
func (f *peakFleet) typical() (median float64, known bool) {
	if median, known = f.averages.median(); known {
		return median, true
	}
	return f.initial, false
}

// A peak is the load of one endpoint.
type peak struct {
	fleet *peakFleet

	// mu guards what follows; the fleet's histogram may be asked under it, never the reverse. Average, stamp
	// and evidence change together: read one by one they were seen to give a mean age of a day.
	mu       sync.Mutex
	born     int64
	answered bool
	average  float64 // at stamp, of successes and lower bounds; before any it is 0
	stamp    int64
	odds
	evidence
	first, last int64 // the first start and the latest
	started     bool
	place       int  // in the fleet's histogram
	gone        bool // from the fleet
}

func (p *peak) Start(now int64) Mark {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started {
		p.started, p.first, p.last = true, now, now
	}
	p.last = max(p.last, now)
	return p.start(now)
}

func (p *peak) End(now int64, mark Mark, class Class) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle(mark, class)
	took := float64(max(now-mark.Start, 0))
	switch class {
	case Success:
		p.succeed(mark.Start, now, took)
	case Failure:
		p.fail(mark.Start, now, took)
	case Cancelled:
		p.raise(now, took)
	case Rejected:
	}
	if p.answered && !p.gone {
		p.place = p.fleet.averages.move(p.place, p.average)
	}
}

func (p *peak) succeed(start, now int64, took float64) {
	fade := p.fleet.fade(p.stamp, now)
	if faded := p.average * fade; took > faded {
		p.average = took
	} else {
		p.average = faded + took*(1-fade)
	}
	p.judge(start, now, p.fleet.fade(p.at, now), true)
	p.answered = true
	p.stamp = max(p.stamp, now)
}

func (p *peak) fail(start, now int64, took float64) {
	median, _ := p.fleet.typical()
	p.raise(now, max(took, median))
	p.judge(start, now, p.fleet.fade(p.at, now), false)
	p.answered = true
}

// raise lets the average be at least took. Where took is what was expected, that is an expectation no longer.
func (p *peak) raise(now int64, took float64) {
	if took >= p.level(now) {
		p.average, p.stamp = took, max(p.stamp, now)
	}
}

func (p *peak) Cost(now int64, held int) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	level := p.level(now)
	if !p.forgotten(now) {
		level = max(level, p.twiceAge(now))
	}
	cost := max(level, minCost) * p.attempts(p.fleet.fade(p.at, now)) * float64(held+1)
	if held > 0 && p.unproven(now) {
		cost *= newcomerFactor
	}
	return cost
}

// level is the average as it stands at now. Before the first answer it is what the fleet makes expect, falling since
// the endpoint came, so that a newcomer is tried in the end however quick its peers are.
func (p *peak) level(now int64) float64 {
	level := p.average * p.fleet.fade(p.stamp, now)
	if !p.answered {
		typical, _ := p.fleet.typical()
		level = max(level, typical*p.fleet.fade(p.born, now))
	}
	return level
}

// forgotten reports whether it is time to try the endpoint again whatever is still out. Starting a call there ends it.
func (p *peak) forgotten(now int64) bool {
	return float64(now-p.last) >= max(retryAfter, retryAfterPeaks*p.average)
}

// unproven reports whether the endpoint has been given its first request and neither answered nor had time enough, while
// its peers have shown what is usual.
func (p *peak) unproven(now int64) bool {
	if p.answered || !p.started {
		return false
	}
	median, known := p.fleet.typical()
	return known && float64(now-p.first) < max(newcomerFor, newcomerForPeaks*median)
}

func (p *peak) Latency(now int64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(p.level(now) * float64(time.Microsecond))
}

func (p *peak) Back(int64) {}

func (p *peak) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fleet.averages.leave(p.place)
	p.place, p.gone = nowhere, true
}

var _ Rejoiner = (*peak)(nil)

func (p *peak) Rejoin(_, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		return
	}
	p.gone = false
	if !p.answered {
		p.born = now
		return
	}
	p.place = p.fleet.averages.move(nowhere, p.average)
}
