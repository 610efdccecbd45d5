package load

import (
	"math"
	"time"
)

const second = 1e6 // in microseconds

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// A decay is one over how long it takes to fall to 1/e, in microseconds: to multiply is quicker than to divide.
type decay float64

func decayOver(d time.Duration) decay { return decay(1 / micros(d)) }

// fade is the weight at now of what was worth 1 at then.
func (d decay) fade(then, now int64) float64 {
	if now <= then {
		return 1
	}
	x := float64(now-then) * float64(d)
	if x < 1.0/64 { // endpoints in use: three terms are exact to 3e-9, and quicker
		return 1 - x*(1-x*(1.0/2)*(1-x*(1.0/3)))
	}
	return math.Exp(-x)
}
