package load

// A slowStart makes an endpoint cost more that has joined its peers, or come back to them.
type slowStart struct {
	on   bool
	from int64
}

const slowest = 0.1 // the least part of SlowStart that counts as age

func (s *slowStart) begin(now int64) { s.on, s.from = true, now }

// factor is what the endpoint costs more at now.
func (s *slowStart) factor(now int64, length float64) float64 {
	if !s.on {
		return 1
	}
	age := float64(now-s.from) / length
	return 1 / sq(min(max(age, slowest), 1))
}

// over reports whether that is no more, and never will be.
func (s *slowStart) over(now int64, length float64) bool {
	return s.on && float64(now-s.from) >= length
}
