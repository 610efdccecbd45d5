package bench

import (
	"context"
	"errors"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
)

type service = belfry.Service[int, int]

var errIll = errors.New("ill")

// callers is how many there are in the mode parallel.
const callers = 64

// A contender does a job once.
type contender struct {
	name string
	do   func(ctx context.Context) error
}

// ours calls svc, as callers of belfry do.
func ours(svc service) contender { return named("belfry", svc) }

func named(name string, svc service) contender {
	return contender{name, func(ctx context.Context) error {
		_, err := belfry.Do(ctx, svc, 1)
		return err
	}}
}

// echo and fail are what is called: through a variable, so that nobody's is inlined.
var (
	echo = func(_ context.Context, n int) (int, error) { return n, nil }
	fail = func(context.Context, int) (int, error) { return 0, errIll }
)

// compare measures all contenders, peers first, in both modes. All have to succeed.
func compare(b *testing.B, name string, contenders ...contender) {
	b.Run(name, func(b *testing.B) {
		run(b, true, contenders)
	})
}

// compareFailing is compare for what has to fail.
func compareFailing(b *testing.B, name string, contenders ...contender) {
	b.Run(name, func(b *testing.B) {
		run(b, false, contenders)
	})
}

func run(b *testing.B, succeed bool, contenders []contender) {
	for _, c := range contenders {
		b.Run("serial/"+c.name, func(b *testing.B) { serial(b, succeed, c.do) })
	}
	for _, c := range contenders {
		b.Run("parallel/"+c.name, func(b *testing.B) { parallel(b, succeed, c.do) })
	}
}

// warmUp is how long a contender does its job before it is measured. A process that has run for no time pays for the first
// megabytes of its heap, and for connections; the peers in other languages get as long.
const warmUp = 30 * time.Millisecond

func warm(do func(context.Context) error) {
	for start := time.Now(); time.Since(start) < warmUp; {
		for range 16 {
			_ = do(context.Background()) // some are to fail
		}
	}
}

func serial(b *testing.B, succeed bool, do func(context.Context) error) {
	ctx := context.Background() // that of a benchmark can be cancelled, and costs more to ask
	warm(do)
	b.ReportAllocs()
	if !b.Loop() {
		return
	}
	start := cpu(b) // now that the benchmark is prepared
	for b.Loop() {
		if err := do(ctx); (err == nil) != succeed {
			b.Fatalf("got %v", err)
		}
	}
	b.ReportMetric(float64(cpu(b)-start)/float64(b.N), "cpu-ns/op")
}

// cpu returns how long the process has computed. Unlike the time of the clock it hardly grows while others use the machine.
func cpu(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func parallel(b *testing.B, succeed bool, do func(context.Context) error) {
	ctx := context.Background()
	if b.N == 1 { // the first of several runs
		warm(do)
	}
	b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
	b.ReportAllocs()
	start := cpu(b)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := do(ctx); (err == nil) != succeed {
				b.Errorf("got %v", err)
				return
			}
		}
	})
	if runtime.GOMAXPROCS(0) == 1 { // else the clock says what more processors bring
		b.ReportMetric(float64(cpu(b)-start)/float64(b.N), "cpu-ns/op")
	}
}
