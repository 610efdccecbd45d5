// Package outlier takes endpoints out that do clearly worse than their peers: that fail more often, or, by option, take longer.
//
// A [Detector] watches the endpoints of one fleet. Once an interval it compares what each of them has done in it, among those that had enough
// calls: the share of its calls that succeeded, and the median of how long its successes took. Who is far below the median success share, or
// far above the median latency, is an outlier, and ejected for a while. Far is in robust deviations (1.4826 times the median
// absolute deviation), which a few bad ones cannot widen, and never less than chance would do with so few calls, nor than a fixed gap. So where all
// fail alike, nobody is ejected: that is a matter for limits and retries, not for choosing.
//
// A time of ejection doubles with each in a row, up to a bound; an interval without reason takes one doubling back. Chance shortens it, so that
// several do not come back at once. How many may be out at a time is for the guard rail (package eject): the worst are
// ejected first, and who has to stay in is judged anew with the next interval.
//
// A [Service] is one endpoint of a Detector. It is ready when its inner service is and it is not ejected; else Acquire refuses with the time that is
// left as retry-after. A caller with nobody else to ask ([eject.Panic]) is let through. Calls in flight are left alone. Latency and success are those
// of Call, whatever becomes of a streamed response. Calls that the Semantics ignore do not count, and one that panics has failed. It adds no
// allocation to a call.
//
// Counts are exact, and those of an interval end with it: an average over time can hide a short outage of everything, as linkerd reasons.
// Comparing success rates with peers, and ejection times that grow, are Envoy's outlier detection; its users have asked for one by latency since 2016.
package outlier

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/eject"
)

const layer = "outlier"

// A Service is an endpoint that is compared with its peers.
type Service[Req, Res any] struct {
	inner   belfry.Service[Req, Res]
	sem     belfry.Semantics[Req, Res]
	member  *Endpoint
	refused atomic.Uint64
}

// New returns inner as an endpoint of d, until it is closed. guard is its part of the guard rail, nil if nobody is asked.
func New[Req, Res any](inner belfry.Service[Req, Res], d *Detector, guard *eject.Endpoint, sem ...belfry.Semantics[Req, Res]) *Service[Req, Res] {
	return &Service[Req, Res]{inner: inner, sem: belfry.SemanticsOf(sem), member: d.Join(guard)}
}

// Layer returns a layer that makes [New], without a guard rail.
func Layer[Req, Res any](d *Detector, sem ...belfry.Semantics[Req, Res]) belfry.Layer[Req, Res] {
	return func(inner belfry.Service[Req, Res]) belfry.Service[Req, Res] { return New(inner, d, nil, sem...) }
}

var (
	_ belfry.Service[int, int] = (*Service[int, int])(nil)
	_ io.Closer                = (*Service[int, int])(nil)
)

// Acquire acquires the inner service, unless the endpoint is ejected: then it refuses with a [belfry.Rejection].
func (s *Service[Req, Res]) Acquire(ctx context.Context) (belfry.Permit, error) {
	if err := s.refusal(ctx); err != nil {
		return belfry.Permit{}, err
	}
	permit, err := s.inner.Acquire(ctx)
	if err != nil {
		return permit, err
	}
	if err := s.refusal(ctx); err != nil {
		s.inner.Release(permit)
		return belfry.Permit{}, err
	}
	return permit, nil
}

func (s *Service[Req, Res]) refusal(ctx context.Context) error {
	if s.member.in() || eject.InPanic(ctx) {
		return nil
	}
	left := s.member.Ejected(time.Now())
	if left == 0 {
		return nil
	}
	s.refused.Add(1)
	return &belfry.Rejection{Layer: layer, Reason: "ejected", RetryAfter: left, Err: belfry.ErrNotReady}
}

// Call calls the inner service, whether or not the endpoint is still in.
func (s *Service[Req, Res]) Call(ctx context.Context, permit belfry.Permit, req Req) (Res, error) {
	began := time.Now()
	returned := false
	defer func() {
		if !returned {
			s.ended(began, belfry.Failure)
		}
	}()
	res, err := s.inner.Call(ctx, permit, req)
	kind := s.sem.Judge(res, err).Kind
	returned = true
	s.ended(began, kind)
	return res, err
}

func (s *Service[Req, Res]) ended(began time.Time, kind belfry.Kind) {
	now := time.Now()
	s.member.End(now, now.Sub(began), kind)
}

// Release gives the inner service its permit back.
func (s *Service[Req, Res]) Release(permit belfry.Permit) { s.inner.Release(permit) }

// Close takes the endpoint out of its Detector, and closes the inner service, if that has a method Close() error.
func (s *Service[Req, Res]) Close() error {
	s.member.Leave()
	if c, ok := s.inner.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Stats returns what there is to know now.
func (s *Service[Req, Res]) Stats() Stats {
	stats := s.member.Stats()
	stats.Refused = s.refused.Load()
	return stats
}
