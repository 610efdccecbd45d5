package lab

import (
	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
)

// Scenarios in which connections matter.

const (
	cold     = "cold"
	warmOne  = "warm-1"
	warmMany = "warm-16"
	oneTo    = "1-connection"
	someTo   = "8-connections"
	oneAnew  = "1-rotated"
	rotating = "8-rotated"
)

func warm() Scenario {
	return Scenario{
		Name: "warm", Unit: "ms", Policies: []string{cold, warmOne, warmMany},
		About: "ten servers that take 20 ms are replaced one by one, and a connection takes 40 ms to open, which a request waits for unless one is idle: connections are opened for requests only, or one or sixteen before a server gets any; the transport is made up, after that of net/http for HTTP/1.1",
		Parts: []Part{{run: func(p sim.Policy, seed uint64) Outcome {
			const n, each = 10, 3 * second
			servers := constant(2*n, 20)
			for i := range int64(n) {
				at := 10*second + i*each
				servers[i].Here = []sim.Span{{From: 0, Until: at}}
				servers[n+i].Here = []sim.Span{{From: at, Until: sim.Never}}
			}
			cfg := sim.Config{
				Servers: servers, Rate: 2000, Horizon: 10*second + n*each, Handshake: 40 * sim.Millisecond,
				Warm: map[string]int{warmOne: 1, warmMany: 16}[p.Name], Policy: own(sim.Default), Seed: seed,
			}
			all := sim.Run(cfg)
			during := from(10 * second)
			l := sim.LatenciesOf(all, during)
			first := map[int32]int64{}
			sum := 0.0
			for _, r := range all {
				if _, ok := first[r.Server]; !ok && r.Server >= n {
					first[r.Server] = r.Latency
					sum += float64(r.Latency)
				}
			}
			return Outcome{
				Figures: []Figure{
					{"first", sum / n / ms},
					{"mean", l.Mean() / ms},
					{"p99", l.At(0.99) / ms},
					{"p999", l.At(0.999) / ms},
					{"waited", sim.Share(all, during, func(r sim.Request) bool { return r.Opened })},
				},
				Curve: curve(l, ms),
			}
		}}},
	}
}

func vip() Scenario {
	return Scenario{
		Name: "vip", Unit: "ms", Policies: []string{oneTo, oneAnew, someTo, rotating},
		About: "ten clients of one address, which gives each connection to one of the servers behind it at random; of ten, four come after 20 s; one or eight connections for each client, these also made anew every 30 s: figures of the last half minute, shares in means; the address is made up, and when connections are made anew follows package discover",
		Parts: []Part{{run: func(p sim.Policy, seed uint64) Outcome {
			const n, late = 10, 6
			servers := make([]sim.Server, n)
			for i := range servers {
				servers[i] = sim.Server{Latency: sim.Exponential(10 * ms), Queue: true}
				if i >= late {
					servers[i].Here = []sim.Span{{From: 20 * second, Until: sim.Never}}
				}
			}
			behind := map[string]sim.Behind{
				oneTo: {PerAddress: 1}, oneAnew: {PerAddress: 1, RotateEvery: 30 * second, Jitter: 0.2},
				someTo: {PerAddress: 8}, rotating: {PerAddress: 8, RotateEvery: 30 * second, Jitter: 0.2},
			}[p.Name]
			all := sim.Run(sim.Config{
				Servers: servers, Clients: 10, Rate: 400, Horizon: 120 * second, Behind: &behind, Policy: own(sim.Default), Seed: seed,
			})
			last := from(90 * second)
			most := 0.0
			for i := range servers {
				most = max(most, n*sim.Share(all, last, to(int32(i))))
			}
			l := sim.LatenciesOf(all, last)
			return Outcome{
				Figures: []Figure{
					{"most", most},
					{"late", sim.Share(all, last, func(r sim.Request) bool { return r.Server >= late }) * n / (n - late)},
					{"mean", l.Mean() / ms},
					{"p99", l.At(0.99) / ms},
				},
				Curve: curve(l, ms),
			}
		}}},
	}
}
