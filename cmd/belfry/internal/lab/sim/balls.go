package sim

import "github.com/belfry-go/belfry/internal/pick"

// Balls throws balls into bins, by policy: each is a request that never ends. It does so in a number of trials, and returns how
// many balls the fullest bin had in each.
func Balls(policy Policy, balls, bins, trials int, seed uint64) []int {
	w := newWorld(Config{Servers: make([]Server, bins), Policy: policy, Seed: seed})
	c := &w.clients[0]
	fullest := make([]int, trials)
	for t := range fullest {
		for range balls {
			ep := c.set[policy.choose(w, c, 0)]
			ep.Hold()
			ep.Begin()
		}
		fullest[t] = empty(c.set)
	}
	return fullest
}

// empty ends all calls, and returns how many the endpoint with the most had.
func empty(set []*pick.Endpoint) (most int) {
	for _, ep := range set {
		held, _ := ep.Held()
		most = max(most, held)
		for range held {
			ep.Finish()
		}
	}
	return most
}

// Picks returns how often policy chose each of n idle servers.
func Picks(policy Policy, n, times int, seed uint64) []int {
	w := newWorld(Config{Servers: make([]Server, n), Policy: policy, Seed: seed})
	counts := make([]int, n)
	for range times {
		counts[policy.choose(w, &w.clients[0], 0)]++
	}
	return counts
}
