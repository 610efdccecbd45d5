package gcra_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/gcra"
)

func BenchmarkTake(b *testing.B) {
	r, bucket := gcra.New(1_000_000_000, time.Second, 1_000_000), gcra.Full()
	now := time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		now += 10
		r.Take(&bucket, now)
	}
}
