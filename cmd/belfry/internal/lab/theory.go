package lab

import "math"

// supermarketMean is the mean time in system, in service times, of the supermarket model with infinitely many queues at load
// l, where each request joins the shortest of d (Vvedenskaya, Dobrushin and Karpelevich 1996; Mitzenmacher 1996).
func supermarketMean(l float64, d int) float64 {
	if d == 1 {
		return 1 / (1 - l)
	}
	mean := 0.0
	for i := 1; ; i++ {
		exponent := (math.Pow(float64(d), float64(i)) - float64(d)) / float64(d-1)
		term := math.Pow(l, exponent)
		if mean += term; term < 1e-12 {
			return mean
		}
	}
}

// supermarketTail is the share of queues with at least i requests in that model.
func supermarketTail(l float64, d, i int) float64 {
	if d == 1 {
		return math.Pow(l, float64(i))
	}
	return math.Pow(l, (math.Pow(float64(d), float64(i))-1)/float64(d-1))
}

// chiSquare returns how likely counts as uneven as these are, or more so, if all are equally likely.
func chiSquare(counts []int) float64 {
	if len(counts) < 2 {
		return 1
	}
	sum := 0
	for _, n := range counts {
		sum += n
	}
	want, x := float64(sum)/float64(len(counts)), 0.0
	for _, n := range counts {
		x += (float64(n) - want) * (float64(n) - want) / want
	}
	return upperGamma(float64(len(counts)-1)/2, x/2)
}

// upperGamma is the regularised upper incomplete gamma function, by its series or its continued fraction (Abramowitz and
// Stegun, 6.5.29 and 6.5.31).
func upperGamma(a, x float64) float64 {
	logGamma, _ := math.Lgamma(a)
	scale := math.Exp(a*math.Log(x) - x - logGamma)
	switch {
	case x <= 0:
		return 1
	case x < a+1:
		sum, term := 1/a, 1/a
		for n := a + 1; term > sum*1e-15; n++ {
			term *= x / n
			sum += term
		}
		return 1 - scale*sum
	}
	fraction := x + 1000
	for n := 1000.0; n >= 1; n-- { // from the inside
		fraction = x + (n-a)/(1+n/fraction)
	}
	return scale / fraction
}
