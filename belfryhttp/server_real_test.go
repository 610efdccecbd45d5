package belfryhttp

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
)

func recovering(inner exchanger) exchanger {
	return belfry.Around(inner, func(ctx context.Context, x Exchange, next *belfry.Next[Exchange, Exchange]) (res Exchange, err error) {
		defer func() {
			if recover() != nil {
				http.Error(x.ResponseWriter(), "recovered", http.StatusInternalServerError)
				res, err = x, nil
			}
		}()
		return next.Call(ctx, x)
	})
}

// The same over sockets and TLS, in real time.
func TestServerOverSockets(t *testing.T) {
	for protocol, h2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(protocol, func(t *testing.T) {
			l := limit.NewLimiter(1)
			release := make(chan struct{})
			mux := http.NewServeMux()
			mux.HandleFunc("/hang", func(_ http.ResponseWriter, r *http.Request) { <-release })
			mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
				for line := range strings.Lines("one\ntwo\n") {
					_, _ = io.WriteString(w, line)
					w.(http.Flusher).Flush()
				}
				<-release
			})
			h, err := NewServerStack().LoadShed().Buffer(1).Limiter(l).Timeout(200 * time.Millisecond).Handler(mux)
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewUnstartedServer(h)
			server.EnableHTTP2 = h2
			server.StartTLS()
			defer server.Close()
			defer sync.OnceFunc(func() { close(release) })()

			res, err := server.Client().Get(server.URL + "/events")
			if err != nil {
				t.Fatal(err)
			}
			if (res.ProtoMajor == 2) != h2 {
				t.Errorf("over %s", res.Proto)
			}
			lines := bufio.NewScanner(res.Body)
			for _, want := range []string{"one", "two"} {
				if lines.Scan(); lines.Text() != want {
					t.Errorf("got %q, %v", lines.Text(), lines.Err())
				}
			}
			wantInFlight(t, l, 1, "events")
			release <- struct{}{}
			if lines.Scan() || lines.Err() != nil {
				t.Errorf("got %q, %v", lines.Text(), lines.Err())
			}
			res.Body.Close()

			res, err = server.Client().Get(server.URL + "/hang")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			wantAnswer(t, res, 504, "deadline", "")
			body := make([]byte, len(timedOutText))
			if _, err := io.ReadFull(res.Body, body); err != nil || string(body) != timedOutText {
				t.Errorf("%q, %v", body, err)
			}
			wantInFlight(t, l, 1, "timed out, and the handler runs")
			release <- struct{}{}
			wantRead(t, res.Body, "")
		})
	}
}
