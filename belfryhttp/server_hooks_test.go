package belfryhttp

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/shed"
	"github.com/belfry-go/belfry/timeout"
)

// A told is what hooks were told of, in order.
type told struct {
	mu  sync.Mutex
	all []string
}

func (h *told) add(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, what)
}

func (h *told) failure(what string) func(error) { return func(error) { h.add(what) } }

func (h *told) admission(what string) func(time.Duration) {
	return func(d time.Duration) { h.add(what + " after " + d.String()) }
}

func TestServerHooks(t *testing.T) {
	overBoth(t, "each layer tells of its own", func(t *testing.T, n *network, tr *http.Transport) {
		var h told
		var expired error
		s := NewServerStack().
			LoadShed(shed.Config{OnReject: h.failure("shed")}).
			Buffer(1, buffer.Config{OnAdmit: h.admission("buffer"), OnReject: h.failure("buffer full")}).
			ConcurrencyLimit(1, limit.Config{OnAdmit: h.admission("limit")}).
			Timeout(time.Minute, timeout.Config{OnTimeout: func(err error) { expired = err; h.add("too late") }})
		first := true
		n.serveStack(s, func(w http.ResponseWriter, r *http.Request) {
			if first {
				first = false
				<-r.Context().Done()
				return
			}
			_, _ = io.WriteString(w, "done")
		})
		var clients sync.WaitGroup
		statuses := make([]int, 3)
		for i := range statuses {
			clients.Go(func() {
				res, _ := fetch(t, tr)
				statuses[i] = res.StatusCode
			})
			synctest.Wait()
		}
		clients.Wait()
		if want := []int{504, 200, 503}; !slices.Equal(statuses, want) {
			t.Errorf("answered %v, want %v", statuses, want)
		}
		want := []string{"limit after 0s", "buffer after 0s", "buffer full", "shed", "too late", "limit after 1m0s", "buffer after 1m0s"}
		if !slices.Equal(h.all, want) {
			t.Errorf("told of\n%s\nwant\n%s", strings.Join(h.all, "\n"), strings.Join(want, "\n"))
		}
		if !errors.Is(expired, timeout.Err) || !errors.Is(expired, http.ErrHandlerTimeout) {
			t.Errorf("the deadline is told of by %v", expired)
		}
	})

	overBoth(t, "a request that was answered in time is not told of", func(t *testing.T, n *network, tr *http.Transport) {
		s := NewServerStack().Timeout(time.Second, timeout.Config{OnTimeout: func(err error) { t.Errorf("told of %v", err) }})
		n.serveStack(s, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "begun, ")
			<-r.Context().Done()
			_, _ = io.WriteString(w, "done")
		})
		if res, body := fetch(t, tr); res.StatusCode != 200 || body != "begun, done" {
			t.Errorf("got %d %q", res.StatusCode, body)
		}
	})

	overBoth(t, "a panic in OnTimeout keeps no place", func(t *testing.T, n *network, tr *http.Transport) {
		l := limit.NewLimiter(1)
		s := NewServerStack().Limiter(l).Timeout(time.Second, timeout.Config{OnTimeout: func(error) { panic(http.ErrAbortHandler) }})
		n.serveStack(s, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		if res, err := tr.RoundTrip(newRequest(t, "GET", "http://a/x", nil)); err == nil {
			res.Body.Close()
		}
		synctest.Wait()
		if s := l.Stats(); s.Admitted != 1 {
			t.Errorf("%d have begun", s.Admitted)
		}
		wantInFlight(t, l, 0, "after the panic")
	})
}

func TestServerTimeoutRefusesWhatAHandlerCannotHave(t *testing.T) {
	for _, cfg := range []timeout.Config{{Wait: true}, {Stream: true}} {
		_, err := NewServerStack().Timeout(time.Second, cfg).Handler(http.NotFoundHandler())
		if err == nil || !strings.Contains(err.Error(), "layer 1, timeout: wait and stream must be false") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	if _, err := NewServerStack().Timeout(time.Second, timeout.Config{}, timeout.Config{}).Handler(http.NotFoundHandler()); err == nil {
		t.Error("two Configs are taken")
	}
	if _, err := NewServerStack().Timeout(0, timeout.Config{}).Handler(http.NotFoundHandler()); err == nil || errors.Is(err, belfry.ErrRejected) {
		t.Errorf("no time: %v", err)
	}
}
