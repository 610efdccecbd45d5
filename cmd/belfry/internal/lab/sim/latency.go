package sim

import (
	"math/rand/v2"
	"sort"
)

// A Latency draws how long a request takes, in µs.
type Latency func(*rand.Rand) float64

// Exponential is a latency with this mean, without memory.
func Exponential(mean float64) Latency {
	return func(random *rand.Rand) float64 { return random.ExpFloat64() * mean }
}

// Constant is always the same latency.
func Constant(latency float64) Latency {
	return func(random *rand.Rand) float64 {
		random.Uint64() // as much as others draw
		return latency
	}
}

// UpTo is a whole number of milliseconds, from 1 to most, each as likely as any other.
func UpTo(most int) Latency {
	return func(random *rand.Rand) float64 { return float64(1+random.IntN(most)) * float64(Millisecond) }
}

// Samples is one of these latencies, each as likely as any other.
func Samples(all []float64) Latency {
	return func(random *rand.Rand) float64 { return all[random.IntN(len(all))] }
}

// A Quantile is a latency, in µs, that the share At of requests does not exceed.
type Quantile struct{ At, Latency float64 }

// Quantiles is the latency with these quantiles, in rising order from 0 to 1, and straight lines between them.
func Quantiles(points []Quantile) Latency {
	return func(random *rand.Rand) float64 {
		u := random.Float64()
		i := sort.Search(len(points)-1, func(i int) bool { return points[i].At > u })
		i = max(i, 1)
		a, b := points[i-1], points[i]
		return a.Latency + (b.Latency-a.Latency)*(u-a.At)/(b.At-a.At)
	}
}
