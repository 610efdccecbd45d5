package load

import "time"

// Constant gives each endpoint a cost of its own, by key, that never changes. A nil Constant makes all equal:
// then the better of two is one at random.
type Constant func(key string) float64

var _ Metric = Constant(nil)

// Validate finds nothing: any function will do.
func (c Constant) Validate() error { return nil }

// Fleet returns a fleet of constants.
func (c Constant) Fleet() Fleet { return constantFleet(c) }

type constantFleet Constant

func (c constantFleet) Timed() bool { return false }

func (c constantFleet) Join(key string, _ int64) Endpoint {
	if c == nil {
		return constant(0)
	}
	return constant(c(key))
}

type constant float64

func (c constant) Start(int64) Mark            { return Mark{} }
func (c constant) End(int64, Mark, Class)      {}
func (c constant) Cost(int64, int) float64     { return float64(c) }
func (c constant) Latency(int64) time.Duration { return 0 }
func (c constant) Leave()                      {}
func (constant) Back(int64)                    {}
