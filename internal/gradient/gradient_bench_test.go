package gradient_test

import (
	"testing"
	"time"
)

func BenchmarkSample(b *testing.B) {
	c := newAdaptive()
	now := time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		now += 10 * time.Microsecond
		c.Sample(now, 10*time.Millisecond, 10)
	}
}
