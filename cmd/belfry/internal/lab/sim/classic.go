package sim

import (
	"math"
	"strconv"
	"time"

	"github.com/belfry-go/belfry/load"
)

// Classic is Peak EWMA as Finagle defines it, and tower after it: a sample above the average replaces it, others are averaged,
// and whoever reads the average lets it fall, also while requests are out. An endpoint that has not answered yet is
// not given a second request.
type Classic struct {
	Decay time.Duration
	// Penalty is what a failure counts as at least, as in linkerd. 0: its latency.
	Penalty time.Duration
}

var _ load.Metric = Classic{}

// Validate finds nothing: the lab makes only valid ones.
func (Classic) Validate() error { return nil }

// Fleet returns a fleet whose endpoints know nothing of each other.
func (c Classic) Fleet() load.Fleet {
	return classicFleet{decay: float64(c.Decay.Microseconds()), penalty: float64(c.Penalty.Microseconds())}
}

type classicFleet struct{ decay, penalty float64 }

func (classicFleet) Timed() bool { return true }

func (f classicFleet) Join(_ string, now int64) load.Endpoint {
	return &classic{classicFleet: f, stamp: now}
}

type classic struct {
	classicFleet
	cost  float64
	stamp int64
}

// unknown is more than any cost.
const unknown = 1e12

func (c *classic) Start(now int64) load.Mark { return load.Mark{Start: now} }

func (c *classic) End(now int64, mark load.Mark, class load.Class) {
	sample := float64(now - mark.Start)
	if class == load.Failure && c.penalty > 0 {
		c.observe(now, 0)
		sample = max(sample, c.penalty, c.cost)
	}
	c.observe(now, sample)
}

func (c *classic) observe(now int64, sample float64) {
	weight := math.Exp(-float64(max(now-c.stamp, 0)) / c.decay)
	if sample > c.cost {
		c.cost = sample
	} else {
		c.cost = c.cost*weight + sample*(1-weight)
	}
	c.stamp = max(c.stamp, now)
}

func (c *classic) Cost(now int64, held int) float64 {
	c.observe(now, 0)
	if c.cost == 0 && held > 0 {
		return unknown + float64(held)
	}
	return c.cost * float64(held+1)
}

func (c *classic) Latency(int64) time.Duration { return time.Duration(c.cost * 1000) }
func (c *classic) Leave()                      {}
func (c *classic) Back(int64)                  {}

// An oracle knows how many requests each server has, of all clients.
type oracle struct{ w *world }

func oracleMetric(w *world) load.Metric { return oracle{w} }

func (oracle) Validate() error     { return nil }
func (o oracle) Fleet() load.Fleet { return o }
func (oracle) Timed() bool         { return false }

func (o oracle) Join(key string, _ int64) load.Endpoint {
	i, err := strconv.Atoi(key)
	if err != nil {
		panic(err) // keys are numbers of servers
	}
	return oracleEndpoint{&o.w.servers[i]}
}

type oracleEndpoint struct{ s *server }

func (oracleEndpoint) Start(int64) load.Mark            { return load.Mark{} }
func (oracleEndpoint) End(int64, load.Mark, load.Class) {}
func (o oracleEndpoint) Cost(int64, int) float64        { return float64(o.s.inside) }
func (oracleEndpoint) Latency(int64) time.Duration      { return 0 }
func (oracleEndpoint) Leave()                           {}
func (oracleEndpoint) Back(int64)                       {}
