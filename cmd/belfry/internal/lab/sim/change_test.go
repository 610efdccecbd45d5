package sim

import (
	"slices"
	"testing"

	"github.com/belfry-go/belfry/eject"
)

// away is three equal servers of which the first is away for 2 s.
func away(t *testing.T, remember int64) Config {
	t.Helper()
	servers := make([]Server, 3)
	for i := range servers {
		servers[i].Latency = Constant(10_000)
	}
	servers[0].Here = []Span{{0, 20 * Second}, {22 * Second, Never}}
	return Config{Servers: servers, Rate: 100, Horizon: 27 * Second, Remember: remember, Policy: find(t, Default), Seed: 1}
}

func TestWhatWasMeasuredIsRemembered(t *testing.T) {
	back := func(r Request) bool { return r.At >= 22*Second }
	first := func(r Request) bool { return r.Server == 0 }
	forgotten, kept := Run(away(t, 0)), Run(away(t, 3*Second))
	if tooShort := Run(away(t, 2*Second)); !slices.Equal(tooShort, forgotten) {
		t.Error("what is remembered for 2 s is known after 2 s")
	}
	if share := Share(kept, back, first); share < 0.25 {
		t.Errorf("a server that is known gets a share of %v, want about a third", share)
	}
	if share := Share(forgotten, back, first); share > 0.15 {
		t.Errorf("a server that is not known gets a share of %v, and should start slowly", share)
	}
}

func TestConnectionsAreOpened(t *testing.T) {
	run := func(warm int) []Request {
		servers := []Server{{Latency: Constant(10_000)}}
		servers[0].Here = []Span{{Second, Never}}
		all := make([]int64, 0, 4)
		for _, at := range []int64{2000, 2001, 2002, 3000} {
			all = append(all, at*Millisecond)
		}
		return Run(Config{Servers: servers, Arrivals: all, Handshake: 50 * Millisecond, Warm: warm, Policy: find(t, Default), Seed: 1})
	}
	for warm, want := range [][]int64{{60, 60, 60, 10}, {10, 60, 60, 10}, {10, 10, 60, 10}, {10, 10, 10, 10}} {
		for i, r := range run(warm) {
			if r.Latency != want[i]*Millisecond || r.Opened != (want[i] == 60) {
				t.Errorf("%d were opened before: request %d took %d ms (opened %v), want %d", warm, i, r.Latency/Millisecond, r.Opened, want[i])
			}
		}
	}
}

// TestNothingIsSentBeforeConnectionsAreThere: a server that comes is used when they are.
func TestNothingIsSentBeforeConnectionsAreThere(t *testing.T) {
	servers := []Server{{Latency: Constant(1000)}}
	servers[0].Here = []Span{{Second, Never}}
	cfg := Config{Servers: servers, Arrivals: []int64{Second + 40*Millisecond, Second + 50*Millisecond}, Handshake: 50 * Millisecond, Warm: 1, Policy: find(t, Default), Seed: 1}
	if all := Run(cfg); all[0].Server != -1 || all[1].Server != 0 {
		t.Errorf("requests went to %d and %d", all[0].Server, all[1].Server)
	}
}

func TestBehindAnAddress(t *testing.T) {
	run := func(b Behind) []Request {
		servers := queues(5)
		servers[4].Here = []Span{{10 * Second, Never}}
		return Run(Config{Servers: servers, Rate: 20, Horizon: 100 * Second, Behind: &b, Policy: find(t, Default), Seed: 3})
	}
	used := func(all []Request, from, until int64) int {
		seen := map[int32]bool{}
		for _, r := range all {
			if r.At >= from && r.At < until {
				seen[r.Server] = true
			}
		}
		return len(seen)
	}
	if n := used(run(Behind{PerAddress: 1}), 0, Never); n != 1 {
		t.Errorf("one connection leads to %d servers", n)
	}
	late := func(r Request) bool { return r.Server == 4 }
	if s := Share(run(Behind{PerAddress: 30}), nil, late); s != 0 {
		t.Errorf("a server that came after the connections got %v", s)
	}
	anew := run(Behind{PerAddress: 1, RotateEvery: 5 * Second, Jitter: 0.2})
	if n := used(anew, 0, Never); n < 4 {
		t.Errorf("a connection that is made anew twenty times leads to %d servers", n)
	}
	if s := Share(anew, nil, late); s == 0 {
		t.Error("a server that came later got nothing from a connection that is made anew")
	}
}

// TestTurns: connections of an address take turns, each after RotateEvery at most, and after 1 - Jitter of it at least.
func TestTurns(t *testing.T) {
	b := Behind{PerAddress: 4, RotateEvery: 8 * Second, Jitter: 0.2}
	cfg := Config{Servers: queues(3), Horizon: 100 * Second, Seed: 1}
	all := b.connect(nil, cfg, 0)[b.PerAddress:]
	made := map[int32]int64{0: 0, 1: 0, 2: 0, 3: 0}
	for i := 0; i < len(all); i += 2 {
		comes, goes := all[i], all[i+1]
		if comes.leaves || !goes.leaves || comes.at != goes.at || comes.name == goes.name {
			t.Fatalf("%+v is followed by %+v", comes, goes)
		}
		stayed := goes.at - made[goes.name]
		if first := i < 2*b.PerAddress; stayed > b.RotateEvery+10 || !first && stayed < b.RotateEvery*8/10-10 {
			t.Errorf("connection %d stayed for %d ms", goes.name, stayed/Millisecond)
		}
		delete(made, goes.name)
		made[comes.name] = comes.at
	}
	if n := len(all) / 2; n < 48 || n > 63 {
		t.Errorf("%d turns in 100 s", n)
	}
}

func TestHeeding(t *testing.T) {
	servers := make([]Server, 10)
	for i := range servers {
		servers[i].Latency = Constant(10_000)
	}
	over := Span{10 * Second, 30 * Second}
	servers[0].Windows = []Window{{Span: over, Fails: 1, FailsIn: 1000, RetryAfter: 2 * Second}}
	run := func(p Policy) (got, early int, after float64) {
		all := Run(Config{Servers: servers, Rate: 1000, Horizon: 60 * Second, Policy: p, Seed: 1})
		for _, r := range all {
			if over.Has(r.At) && r.Server == 0 {
				got++
			}
			if r.Early {
				early++
			}
		}
		return got, early, Share(all, func(r Request) bool { return r.At >= 45*Second }, func(r Request) bool { return r.Server == 0 })
	}
	plain := find(t, "in-flight")
	if got, early, _ := run(plain); got < 1000 || early < got-20 {
		t.Errorf("who heeds nothing sent %d, of which %d too early", got, early)
	}
	got, early, after := run(Heeding(plain, eject.Config{}))
	if got < 10 || got > 30 || early != 0 {
		t.Errorf("who heeds what is asked sent %d in 20 s, of which %d too early", got, early)
	}
	if after < 0.08 {
		t.Errorf("a server that is well again got %v, want about a tenth", after)
	}
}
