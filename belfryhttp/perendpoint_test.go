package belfryhttp

import (
	"sync/atomic"
	"testing"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
)

type closable struct {
	service
	closes *atomic.Int64
}

func (c closable) Close() error { c.closes.Add(1); return nil }

// A layer that keeps something going for its endpoint, such as a probe, is told when the endpoint goes.
func TestBalanceClosesWhatPerEndpointMade(t *testing.T) {
	var closes atomic.Int64
	b, err := Balance(discover.List("http://127.0.0.1:1"), balance.Config{}, Config{PerEndpoint: func(inner service) service {
		return closable{inner, &closes}
	}})
	if err != nil {
		t.Fatal(err)
	}
	permit, err := b.Acquire(t.Context()) // the endpoint is up
	if err != nil {
		t.Fatal(err)
	}
	b.Release(permit)
	if err := b.Close(); err != nil || closes.Load() != 1 {
		t.Errorf("%v, closed %d times, want once", err, closes.Load())
	}
}
