package belfryhttp

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/limit"
)

// Handlers that answer, hang, stream, panic, end and take over; clients that leave, send half and read half. Whatever happens:
// no answer is mixed of two, places come back, and nothing is left running.
func TestServerUnderStress(t *testing.T) {
	overBoth(t, "stress", func(t *testing.T, n *network, tr *http.Transport) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		l := limit.NewLimiter(5)
		n.serveStack(NewServerStack().LoadShed().Buffer(10).Limiter(l).Timeout(2*time.Second), capricious)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				for range 30 {
					strain(t, tr, rng)
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := l.Stats(); s.InFlight != 0 || s.Reserved != 0 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}

const moods = 10

func capricious(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Inner", "1")
	time.Sleep(time.Duration(rand.IntN(4)) * time.Second)
	switch rand.IntN(moods) {
	case 0:
		panic(http.ErrAbortHandler)
	case 1:
		<-r.Context().Done()
	case 2:
		w.WriteHeader(http.StatusEarlyHints)
	case 3:
		if h, ok := w.(http.Hijacker); ok {
			if conn, _, err := h.Hijack(); err == nil {
				conn.Close()
				return
			}
		}
	case 4:
		runtime.Gosched()
		w.(http.Flusher).Flush()
	case 5:
		_, _ = io.Copy(io.Discard, r.Body)
	}
	time.Sleep(time.Duration(rand.IntN(2)) * time.Second)
	_, _ = w.Write(bytes.Repeat([]byte("x"), rand.IntN(20_000)))
}

func strain(t *testing.T, tr *http.Transport, rng *rand.Rand) {
	// net/http waits for the rest of half a request, on both sides.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if rng.IntN(4) == 0 {
		time.AfterFunc(time.Duration(rng.IntN(4))*time.Second, cancel)
	}
	var body io.Reader
	switch rng.IntN(3) {
	case 0:
		body = bytes.NewReader(make([]byte, rng.IntN(20_000)))
	case 1:
		half, feed := io.Pipe()
		context.AfterFunc(ctx, func() { feed.Close() })
		body = half
	}
	res, err := tr.RoundTrip(newRequest(t, "POST", "http://a/x", body).WithContext(ctx))
	if err != nil {
		return
	}
	defer res.Body.Close()
	ours := res.Header.Get(ReasonHeader) != ""
	if ours == (res.Header.Get("X-Inner") != "") || ours == (res.StatusCode == 200) {
		t.Errorf("mixed: %d %v", res.StatusCode, res.Header)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, int64(rng.IntN(20_000))))
	if ours != bytes.Contains(text, []byte("50")) && err == nil && len(text) > 10 {
		t.Errorf("mixed: %d %.50q", res.StatusCode, text)
	}
}
