package belfryhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/hedge"
)

// A slowFirst is a RoundTripper whose first answer takes a second, and the others nothing. Bodies end with their context.
type slowFirst struct {
	n      atomic.Int32
	got    [3]string // request bodies
	bodies [3]*tape
}

// A tape is a response body that can be read while its context lives.
type tape struct {
	ctx    context.Context
	text   io.Reader
	closed atomic.Int32
}

func (p *tape) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.text.Read(b)
}

func (p *tape) Close() error { p.closed.Add(1); return nil }

func (s *slowFirst) RoundTrip(req *http.Request) (*http.Response, error) {
	i := s.n.Add(1) - 1
	if req.Body != nil {
		defer req.Body.Close()
		text, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		s.got[i] = string(text)
	}
	if i == 0 {
		select {
		case <-time.After(time.Second):
		case <-req.Context().Done():
			return nil, context.Cause(req.Context())
		}
	}
	s.bodies[i] = &tape{ctx: req.Context(), text: strings.NewReader("answer")}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: s.bodies[i], ContentLength: -1}, nil
}

func TestHedge(t *testing.T) {
	for name, c := range map[string]struct {
		method, body, key, upgrade string
		cfg                        Config
		hedged                     bool
	}{
		"GET":                                  {method: "GET", hedged: true},
		"PUT with a body":                      {method: "PUT", body: "content", hedged: true},
		"POST":                                 {method: "POST"},
		"POST with a body that can be copied":  {method: "POST", body: "content"},
		"POST with an Idempotency-Key":         {method: "POST", body: "content", key: "k", hedged: true},
		"GET that asks for an upgrade":         {method: "GET", upgrade: "websocket"},
		"PATCH":                                {method: "PATCH", body: "content"},
		"GET that the Config says writes":      {method: "GET", cfg: Config{Idempotent: func(*http.Request) bool { return false }}},
		"POST that the Config says only reads": {method: "POST", body: "content", cfg: Config{Idempotent: func(*http.Request) bool { return true }}, hedged: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := &slowFirst{}
				svc, err := NewStack(c.cfg).Hedge(hedge.Config{Delay: 10 * time.Millisecond}).Build(Transport(rt))
				if err != nil {
					t.Fatal(err)
				}
				var body io.Reader
				if c.body != "" {
					body = strings.NewReader(c.body)
				}
				req, _ := http.NewRequestWithContext(t.Context(), c.method, "http://x", body)
				if c.key != "" {
					req.Header.Set("Idempotency-Key", c.key)
				}
				if c.upgrade != "" {
					req.Header.Set("Upgrade", c.upgrade)
				}
				begin := time.Now()
				res, err := RoundTripper(svc, c.cfg).RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute) // the winner's context lives as long as its body
				text, err := io.ReadAll(res.Body)
				res.Body.Close()
				if string(text) != "answer" || err != nil {
					t.Errorf("read %q, %v", text, err)
				}
				want, took := 1, time.Minute+time.Second
				if c.hedged {
					want, took = 2, time.Minute+10*time.Millisecond
				}
				if got := int(rt.n.Load()); got != want || time.Since(begin) != took {
					t.Errorf("sent %d times, want %d; took %v", got, want, time.Since(begin))
				}
				for i := range want {
					if rt.got[i] != c.body {
						t.Errorf("attempt %d was sent with the body %q", i+1, rt.got[i])
					}
				}
			})
		})
	}

	t.Run("a server that is overtaken has not failed", func(t *testing.T) {
		out := mustSemantics().Judge(nil, &Error{Request: newRequest(t, "GET", "http://x", nil), Err: hedge.ErrLost})
		if out.Kind.String() != "ignored" || !errors.Is(hedge.ErrLost, context.Canceled) {
			t.Errorf("%+v", out)
		}
	})

	t.Run("a 503 does not beat a server that is slow", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var n atomic.Int32
			bad := &tape{ctx: t.Context(), text: strings.NewReader("busy")}
			rt := tripFunc(func(*http.Request) (*http.Response, error) {
				if n.Add(1) == 2 {
					return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: bad}, nil
				}
				time.Sleep(time.Second)
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}, nil
			})
			svc, err := NewStack().Hedge(hedge.Config{Delay: 10 * time.Millisecond}).Build(Transport(rt))
			if err != nil {
				t.Fatal(err)
			}
			res, err := RoundTripper(svc).RoundTrip(newRequest(t, "GET", "http://x", nil))
			if err != nil || res.StatusCode != http.StatusOK || bad.closed.Load() == 0 {
				t.Errorf("%v, %v, the 503 closed %d times", res, err, bad.closed.Load())
			}
			res.Body.Close()
		})
	})
}
