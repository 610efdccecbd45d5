package balance

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/load"
)

// A Reporter is a service of one endpoint that hears from its server how busy it is, as a rule in its answers. If the dialler returns one, and
// the metric is one that listens, such as [load.Reported], OnReport is called once, before the first call.
type Reporter interface {
	// OnReport makes the service tell what it hears from now on, before Call returns. The function may be called
	// concurrently; a report that is not valid is counted, and otherwise ignored.
	OnReport(told func(load.Report))
}

// A Prober is a service of one endpoint that can ask its server how busy it is. If the dialler returns one, and the metric is one that wants
// to know, such as [load.Probing], the Balancer asks after some calls, in a goroutine of its own.
type Prober interface {
	// Probe asks. It may be called concurrently, and while the service is closed. Its ctx ends after Config.ProbeTimeout, and
	// when the endpoint is removed. An error with a zero report means that nobody answered.
	Probe(ctx context.Context) (load.Report, error)
}

const (
	defaultProbeTimeout = time.Second
	defaultMaxProbes    = 64
)

// reports counts what an endpoint was told.
type reports struct{ good, bad atomic.Uint64 }

// ProbeStats is what there is to see of probes.
type ProbeStats struct {
	// InFlight is how many wait for their answers.
	InFlight int
	// Sent is how many were sent, and Failed how many of them got no valid answer.
	Sent, Failed uint64
	// Refused is how many were not sent: for want of budget, or because too many were in flight.
	Refused uint64
}

// probes counts them.
type probes struct {
	inFlight              atomic.Int64
	sent, failed, refused atomic.Uint64
}

func (p *probes) stats() ProbeStats {
	return ProbeStats{
		InFlight: int(p.inFlight.Load()), Sent: p.sent.Load(), Failed: p.failed.Load(), Refused: p.refused.Load(),
	}
}

// listen lets svc tell ep's load what its server reports, if they can.
func (b *Balancer[Req, Res]) listen(ep *endpoint[Req, Res], svc belfry.Service[Req, Res], measured load.Endpoint) error {
	from, ok := svc.(Reporter)
	to, wants := measured.(load.Reporter)
	if !ok || !wants {
		return nil
	}
	return guard(func() error {
		from.OnReport(func(r load.Report) { b.told(ep, to, r) })
		return nil
	})
}

// told passes a report on, and reports whether it was valid.
func (b *Balancer[Req, Res]) told(ep *endpoint[Req, Res], to load.Reporter, r load.Report) bool {
	if !r.Valid() {
		ep.reports.bad.Add(1)
		return false
	}
	ep.reports.good.Add(1)
	to.Report(b.now(), r)
	return true
}

// suggested asks the endpoint that the metric says is best, if it does. It is for balancers whose endpoints are all alike in what they are chosen by beside
// their load; where they are not, costs decide.
func (b *Balancer[Req, Res]) suggested(d *draft, ask context.Context, s *set[Req, Res], tried *attempt.Set) (belfry.Permit, bool) {
	ep := s.find(b.chooser.Choose(b.now()))
	if ep == nil || tried.Has(&ep.Endpoint) || b.isOut(ep) {
		return belfry.Permit{}, false
	}
	d.found(ByMetric)
	permit, err := b.ask(d, ask, ep)
	if err != nil {
		d.found(ByDraw)
	}
	return permit, err == nil
}

// isOut reports whether ep is ejected.
func (b *Balancer[Req, Res]) isOut(ep *endpoint[Req, Res]) bool {
	return !b.guard.Quiet() && ep.guard.Grade(time.Now()) == eject.Out
}

// find returns the endpoint whose load is measured, nil if it is not in s.
func (s *set[Req, Res]) find(measured load.Endpoint) *endpoint[Req, Res] {
	if measured == nil {
		return nil
	}
	for _, ep := range s.eps {
		if ep.load == measured {
			return ep
		}
	}
	return nil
}

// probe asks those servers that the metric wants to be asked.
func (b *Balancer[Req, Res]) probe() {
	now := b.now()
	for measured := b.chooser.Probe(now, b.random); measured != nil; measured = b.chooser.Probe(now, b.random) {
		ep := b.ready.Load().find(measured)
		if ep == nil {
			continue
		}
		if svc, ok := ep.svc.(Prober); ok && !b.startProbe(ep, svc) {
			b.probes.refused.Add(1)
		}
	}
}

// startProbe starts a goroutine that asks ep's server, unless that would be too many.
func (b *Balancer[Req, Res]) startProbe(ep *endpoint[Req, Res], svc Prober) bool {
	if b.probes.inFlight.Load() >= int64(b.cfg.MaxProbes) || b.cfg.ProbeBudget != nil && !b.cfg.ProbeBudget.Withdraw() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.drivers.Add(1) // Close waits for probes as for drivers
	b.probes.inFlight.Add(1)
	go b.sendProbe(ep, svc)
	return true
}

func (b *Balancer[Req, Res]) sendProbe(ep *endpoint[Req, Res], svc Prober) {
	defer b.drivers.Done()
	defer b.probes.inFlight.Add(-1)
	b.probes.sent.Add(1)
	answered := false
	defer func() {
		if !answered {
			b.probes.failed.Add(1)
		}
	}()
	ctx, cancel := context.WithTimeout(ep.ctx, b.cfg.ProbeTimeout)
	defer cancel()
	var r load.Report
	err := guard(func() (err error) {
		r, err = svc.Probe(ctx)
		return err
	})
	if err != nil {
		return
	}
	if to, ok := ep.load.(load.Reporter); ok {
		answered = b.told(ep, to, r)
	}
}
