package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestAServerThatNeverAnswersCostsAnAttempt(t *testing.T) {
	var stranded atomic.Int64
	mute := server(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that the client has left
		stranded.Add(1)
		<-r.Context().Done()
	})
	echo := server(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.Method, body)
	})
	p := start(t, func(c *Config) { c.AttemptTimeout, c.Load = 50*time.Millisecond, LoadRandom }, mute, echo)
	for i := range 20 {
		method, body := http.MethodGet, ""
		if i%2 == 1 {
			method, body = http.MethodPut, "body"
		}
		if res, text := p.fetch(t, method, "/", body); res.StatusCode != http.StatusOK || text != method+" "+body {
			t.Errorf("request %d is answered %s, %q", i, res.Status, text)
		}
	}
	if stranded.Load() == 0 {
		t.Error("none went to the server that does not answer")
	}
	if n := p.server.State().Refusals["attempt timeout"]; n != uint64(stranded.Load()) {
		t.Errorf("%d attempts were cut, and counted %d times", stranded.Load(), n)
	}
	if text := p.server.State().Stack; !strings.Contains(text, "attempt timeout(50ms)") {
		t.Errorf("the stack is %s", text)
	}
}

func TestWhatCannotBeSentAgainHasAllTheTime(t *testing.T) {
	for _, c := range []struct {
		method string
		asked  int64
	}{{http.MethodPost, 1}, {http.MethodGet, 2}} { // the second is the last one
		var asked atomic.Int64
		slow := server(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			asked.Add(1)
			select {
			case <-time.After(300 * time.Millisecond):
			case <-r.Context().Done():
			}
			_, _ = io.WriteString(w, "late")
		})
		p := start(t, func(c *Config) { c.AttemptTimeout, c.Attempts = 30*time.Millisecond, 2 }, slow)
		if res, text := p.fetch(t, c.method, "/", "body"); res.StatusCode != http.StatusOK || text != "late" || asked.Load() != c.asked {
			t.Errorf("%s is answered %s, %q, after %d attempts, want %d", c.method, res.Status, text, asked.Load(), c.asked)
		}
	}
}
