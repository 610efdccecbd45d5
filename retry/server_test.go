package retry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
)

// bubble runs f as a subtest in virtual time.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// elapse lets virtual time pass, and happen what then does. Outside a bubble it panics.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// A page is a streamed response: its place on the server is free when it is closed.
type page struct {
	status int
	after  time.Duration // its retry-after
	closed atomic.Bool
	free   func()
}

func (p *page) Close() {
	if !p.closed.Swap(true) && p.free != nil {
		p.free()
	}
}

// pages is what requests and pages mean: a status from 500 on is a failure that may be tried again, and a request that
// begins with "once" cannot be copied.
var pages = belfry.Semantics[string, *page]{
	Classify: func(res *page, err error) belfry.Outcome {
		if err == nil && res.status >= 500 {
			return belfry.Outcome{Kind: belfry.Failure, Retry: true, RetryAfter: res.after}
		}
		if errors.Is(err, errDial) {
			return belfry.Outcome{Kind: belfry.Failure, Retry: true}
		}
		return belfry.ClassifyError(err)
	},
	Copy:    func(req string) (string, bool) { return req, len(req) < 4 || req[:4] != "once" },
	Discard: func(res *page) { res.Close() },
}

var (
	errBroken = errors.New("broken")
	errDial   = errors.New("dial failed")
)

// undialled is the error of an attempt that was not sent.
func undialled() error { return &belfry.Rejection{Layer: "dial", Err: errDial} }

// A server is an inner service of a number of places. It logs what is done to it, and a test fails if a permit or a page is left
// over at its end.
type server struct {
	// answer is asked for the nth attempt, from 1.
	answer func(ctx context.Context, n int, req string) (*page, error)
	// refuse, if set, is asked for the nth Acquire, from 1.
	refuse func(n int) error

	places chan struct{}

	mu       sync.Mutex
	log      []string
	acquires int
	calls    int
	granted  int
	open     []*page
}

type place struct{ spent atomic.Bool }

func newServer(t *testing.T, places int, answer func(ctx context.Context, n int, req string) (*page, error)) *server {
	s := &server{answer: answer, places: make(chan struct{}, places)}
	t.Cleanup(func() {
		if s.granted != 0 {
			t.Errorf("%d permits were neither spent nor released", s.granted)
		}
	})
	return s
}

// inTurn answers with each error in turn, nil meaning a page of status 200, and with the last one ever after.
func inTurn(errs ...error) func(context.Context, int, string) (*page, error) {
	return func(_ context.Context, n int, _ string) (*page, error) {
		if err := errs[min(n, len(errs))-1]; err != nil {
			return nil, err
		}
		return &page{status: 200}, nil
	}
}

// statuses answers with a page of each status in turn, and of the last one ever after.
func statuses(list ...int) func(context.Context, int, string) (*page, error) {
	return func(_ context.Context, n int, _ string) (*page, error) {
		return &page{status: list[min(n, len(list))-1]}, nil
	}
}

func (s *server) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

func (s *server) Acquire(ctx context.Context) (belfry.Permit, error) {
	s.note("acquire")
	s.mu.Lock()
	s.acquires++
	n := s.acquires
	s.mu.Unlock()
	if s.refuse != nil {
		if err := s.refuse(n); err != nil {
			return belfry.Permit{}, err
		}
	}
	select {
	case s.places <- struct{}{}:
	default:
		select {
		case s.places <- struct{}{}:
		case <-ctx.Done():
			return belfry.Permit{}, &belfry.Rejection{Layer: "server", Err: ctx.Err()}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.granted++
	return belfry.NewPermit(new(place)), nil
}

func (s *server) spend(permit belfry.Permit) {
	if permit.Value().(*place).spent.Swap(true) {
		panic("permit spent twice")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.granted--
}

func (s *server) Release(permit belfry.Permit) {
	s.note("release")
	s.spend(permit)
	<-s.places
}

func (s *server) Call(ctx context.Context, permit belfry.Permit, req string) (*page, error) {
	s.spend(permit)
	s.note("call %s", req)
	streaming := false
	defer func() {
		if !streaming {
			<-s.places
		}
	}()
	s.mu.Lock()
	s.calls++
	n := s.calls
	s.mu.Unlock()
	res, err := s.answer(ctx, n, req)
	if err == nil {
		streaming = true
		res.free = func() { s.note("close %d", res.status); <-s.places }
		s.mu.Lock()
		s.open = append(s.open, res)
		s.mu.Unlock()
	}
	return res, err
}

// did returns what was done to the server since it was last asked.
func (s *server) did() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log
	s.log = nil
	return log
}

// opened returns how many pages were not closed.
func (s *server) opened() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.open {
		if !p.closed.Load() {
			n++
		}
	}
	return n
}

func sameLog(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
}
