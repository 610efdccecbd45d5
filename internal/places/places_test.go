package places

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestCount(t *testing.T) {
	t.Run("takes what is free, unless it is closed", func(t *testing.T) {
		var c Count
		if c.Take() || c.Claim() {
			t.Error("a place of none")
		}
		c.Grow(2)
		if !c.Take() || c.Free() != 1 {
			t.Errorf("%d free of two, one of them taken", c.Free())
		}
		c.Close()
		c.Close()
		if c.Take() || c.Free() != 1 {
			t.Errorf("closed, and %d free", c.Free())
		}
		if !c.Claim() || c.Claim() || c.ClaimOrClose() {
			t.Error("who has the mutex gets the one that is free")
		}
		if !c.Give() || !c.End() {
			t.Error("nobody is told that a place may be awaited")
		}
		c.Open()
		c.Open()
		if !c.Take() || c.Free() != 1 || c.Give() || c.End() {
			t.Errorf("open, and %d free", c.Free())
		}
	})
	t.Run("closes only if none is free", func(t *testing.T) {
		var c Count
		c.Grow(1)
		if !c.ClaimOrClose() || c.Give() {
			t.Error("closed with one that is free")
		}
		c.Take()
		if c.ClaimOrClose() || !c.Give() || c.Take() {
			t.Error("not closed with none")
		}
	})
	t.Run("bounds", func(t *testing.T) {
		for _, closed := range []bool{false, true} {
			var c Count
			c.Grow(Most)
			if closed {
				c.Close()
			}
			for range 3 {
				c.Claim()
			}
			if got := c.Free(); got != Most-3 || c.Give() != closed {
				t.Errorf("closed: %v, %d free, want %d", closed, got, Most-3)
			}
			c.Grow(-Most)
			if got := c.Free(); got != -2 || c.Give() != closed || c.Take() || c.Claim() {
				t.Errorf("closed: %v, %d free of none, two taken", closed, got)
			}
			c.Grow(2 - Most)
			if got := c.Free(); got != 1-Most || c.Give() != closed {
				t.Errorf("closed: %v, %d free, want %d", closed, got, 1-Most)
			}
		}
	})
	t.Run("calls in flight, over what half a word counts", func(t *testing.T) {
		for _, before := range []int64{0, 1<<31 - 2, 1<<32 - 2, 1<<33 - 2} {
			for _, closed := range []bool{false, true} {
				var c Count
				var begun atomic.Uint64
				begun.Store(uint64(before))
				c.word.Add(before * ended)
				c.Grow(9)
				for range 5 {
					c.Take()
				}
				begun.Add(4)
				if closed {
					c.Close()
				}
				for n := range 4 {
					if free, inFlight, calls := c.Look(&begun); free != 4+n || inFlight != 4-n || calls != uint64(before)+4 {
						t.Errorf("%d before, closed: %v: %d free, %d in flight, %d calls", before, closed, free, inFlight, calls)
					}
					c.End()
				}
			}
		}
	})
}

// TestLook takes, begins, ends and gives back in several goroutines, while another looks.
func TestLook(t *testing.T) {
	var c Count
	var begun atomic.Uint64
	var wg sync.WaitGroup
	var stop atomic.Bool
	c.Grow(3)
	for range 4 {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				if !c.Take() {
					runtime.Gosched()
					continue
				}
				if i%3 == 0 {
					c.Give()
					continue
				}
				begun.Add(1)
				c.End()
			}
		})
	}
	for begun.Load() < 500_000 {
		if free, inFlight, _ := c.Look(&begun); free < 0 || inFlight < 0 || free+inFlight > 3 {
			t.Errorf("%d free and %d in flight, of three", free, inFlight)
			break
		}
	}
	stop.Store(true)
	wg.Wait()
	if free, inFlight, _ := c.Look(&begun); free != 3 || inFlight != 0 {
		t.Errorf("at the end %d free and %d in flight", free, inFlight)
	}
}

// A call takes a place, and gives it back as one that has ended.
func BenchmarkCount(b *testing.B) {
	var c Count
	c.Grow(1)
	b.ReportAllocs()
	for b.Loop() {
		if !c.Take() || c.End() {
			b.Fatal("somebody waits")
		}
	}
}
