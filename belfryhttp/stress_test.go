package belfryhttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/retry"
	"github.com/belfry-go/belfry/timeout"
)

// Servers that answer, fail, hang, break and are not there; callers that leave, wait, read half or nothing. Whatever
// happens: bodies are whole and closed once, places come back, and nothing is left running.
func TestClientUnderStress(t *testing.T) {
	overBoth(t, "stress", func(t *testing.T, n *network, tr *http.Transport) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		n.serve(moody)
		c := newClient(t, tr, Config{BodyBuffer: 10_000}, "http://a", "http://dead", "http://a/again")
		_ = c.limiter.Resize(5)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				for range 20 {
					stressOnce(t, c, rng)
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Minute) // for handlers whose client has left
		synctest.Wait()
		c.wantFree(t, "all is over")
	})
}

// moody echoes, or does what the path asks for, on the first attempts.
func moody(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	mood := r.URL.Query().Get("mood")
	switch {
	case err != nil || mood == "abort":
		panic(http.ErrAbortHandler)
	case mood == "hang":
		<-r.Context().Done()
		return
	case mood == "busy" && rand.IntN(2) == 0:
		w.Header().Set("Retry-After", fmt.Sprint(rand.IntN(2)))
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write(make([]byte, rand.IntN(100_000)))
		return
	case mood == "half":
		w.Header().Set("Content-Length", "1000000")
		_, _ = w.Write(body)
		panic(http.ErrAbortHandler)
	case mood == "slow":
		time.Sleep(time.Second)
	}
	_, _ = w.Write(body)
}

func stressOnce(t *testing.T, c *client, rng *rand.Rand) {
	mood := []string{"", "", "busy", "slow", "abort", "hang", "half"}[rng.IntN(7)]
	method := []string{"PUT", "POST"}[rng.IntN(2)]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if rng.IntN(4) == 0 {
		time.AfterFunc(time.Duration(rng.IntN(2000))*time.Millisecond, cancel)
	}
	text := bytes.Repeat([]byte{byte('a' + rng.IntN(26))}, rng.IntN(20_000))
	src := newSource(t, "")
	src.Reader = bytes.NewReader(text)
	req := newRequest(t, method, "http://svc/x?mood="+mood, src).WithContext(ctx)
	if rng.IntN(2) == 0 {
		req.ContentLength = int64(len(text))
	}
	res, err := c.trip.RoundTrip(req)
	if err != nil {
		wantKnown(t, mood, err)
		wantClosedSoon(t, src)
		return
	}
	defer wantClosedSoon(t, src)
	defer res.Body.Close()
	if res.StatusCode == http.StatusServiceUnavailable {
		if mood != "busy" {
			t.Errorf("%s: %d", mood, res.StatusCode)
		}
		return
	}
	switch rng.IntN(4) {
	case 0:
		return
	case 1:
		_, _ = res.Body.Read(make([]byte, 10))
		return
	}
	got, err := io.ReadAll(res.Body)
	if err == nil && (!bytes.Equal(got, text) || mood == "half") {
		t.Errorf("%s %s: got %d bytes back for %d", method, mood, len(got), len(text))
	}
}

// wantKnown checks that err is one of those that the test provokes.
func wantKnown(t *testing.T, mood string, err error) {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, timeout.Err):
	case errors.Is(err, belfry.ErrRejected): // too many wait, or nothing but the dead endpoint was tried
	case errors.Is(err, retry.ErrOutOfBudget):
	case mood == "abort", mood == "half":
		text := err.Error()
		if !strings.Contains(text, "EOF") && !strings.Contains(text, "stream error") && !strings.Contains(text, "closed") {
			t.Errorf("%s: %v", mood, err)
		}
	default:
		t.Errorf("%q: %v (%T)", mood, err, err)
	}
}

// wantClosedSoon waits until a transport that is still sending has noticed that its request is over.
func wantClosedSoon(t *testing.T, src *source) {
	t.Helper()
	for range 1000 {
		if src.closed.Load() > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	src.wantClosed(1)
}
