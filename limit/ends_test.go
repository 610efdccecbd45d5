package limit_test

import (
	"runtime"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
)

// TestUnusualEnds gives back a place whatever ends an Acquire or a Call.
func TestUnusualEnds(t *testing.T) {
	boom := func() { panic("boom") }
	for _, c := range []struct {
		name string
		svc  func(*limit.Limiter) belfry.Service[string, *stream]
		ok   bool // Do returns, without an error
	}{
		{"Acquire fails", over(faulty{acquire: func() error { return errBoom }}), false},
		{"Acquire panics", over(faulty{acquire: func() error { boom(); return nil }}), false},
		{"Acquire ends the goroutine", over(faulty{acquire: func() error { runtime.Goexit(); return nil }}), false},
		{"Call fails", over(faulty{call: func() error { return errBoom }}), false},
		{"Call panics", over(faulty{call: func() error { boom(); return nil }}), false},
		{"Call ends the goroutine", over(faulty{call: func() error { runtime.Goexit(); return nil }}), false},
		{"Call fails, of a stream", over(faulty{call: func() error { return errBoom }}, streams), false},
		{"Call panics, of a stream", over(faulty{call: func() error { boom(); return nil }}, streams), false},
		{"Call ends the goroutine, of a stream", over(faulty{call: func() error { runtime.Goexit(); return nil }}, streams), false},
		{"Until panics", over(faulty{}, belfry.Semantics[string, *stream]{
			Until: func(*stream, func()) *stream { boom(); return nil },
		}), false},
		{"the stream ends within Until", over(faulty{}, belfry.Semantics[string, *stream]{
			Until: func(s *stream, done func()) *stream { done(); return s },
		}), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := limit.NewLimiter(1)
			svc := c.svc(l)
			for range 2 {
				var ok bool
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					defer func() { _ = recover() }()
					_, err := belfry.Do(t.Context(), svc, "")
					ok = err == nil
				}()
				<-ended
				if ok != c.ok {
					t.Errorf("answered: %v, want %v", ok, c.ok)
				}
				if s := l.Stats(); s.InFlight+s.Reserved != 0 || s.Rejected != 0 {
					t.Errorf("left behind: %+v", s)
				}
			}
		})
	}

	t.Run("Release panics", func(t *testing.T) {
		l := limit.NewLimiter(1)
		svc := over(faulty{release: func() {
			if s := l.Stats(); s.Reserved != 1 {
				t.Errorf("the place was free before the inner permit: %+v", s)
			}
			boom()
		}})(l)
		permit, _ := svc.Acquire(t.Context())
		func() {
			defer func() { _ = recover() }()
			svc.Release(permit)
		}()
		if s := l.Stats(); s.Reserved != 0 {
			t.Errorf("left behind: %+v", s)
		}
	})
}

// TestPermitPassesThrough makes sure that the inner service gets its own permit back.
func TestPermitPassesThrough(t *testing.T) {
	mine := belfry.NewPermit(new(int))
	svc := limit.NewConcurrency(faulty{permit: mine, check: func(p belfry.Permit) {
		if p != mine {
			t.Errorf("got another permit: %v", p)
		}
	}}, limit.NewLimiter(1))
	for range 2 {
		permit, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		svc.Release(permit)
		if _, err := belfry.Do(t.Context(), svc, ""); err != nil {
			t.Error(err)
		}
	}
}
