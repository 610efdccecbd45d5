package belfryhttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/retry"
)

type service = belfry.Service[*http.Request, *http.Response]

// retried is rt with up to three attempts.
func retried(rt http.RoundTripper, cfg ...Config) service {
	return retriedService(Transport(rt), cfg...)
}

func retriedService(svc service, cfg ...Config) service {
	return retry.New(svc, retry.Config{MaxAttempts: 3, Budget: unlimited()}, Semantics(cfg...))
}

func unlimited() *budget.Budget { return budget.New(budget.Config{Ratio: 1, Reserve: 1000}) }

// scripted answers with one status after the other, after having read the body.
type scripted struct {
	t        testing.TB
	statuses []int
	got      []string
	bodies   []*counter
}

func (s *scripted) RoundTrip(req *http.Request) (*http.Response, error) {
	n := len(s.got)
	if req.Body != nil {
		b, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		s.got = append(s.got, string(b))
		req.Body.Close()
	} else {
		s.got = append(s.got, "")
	}
	if n > 0 && s.bodies[n-1].closed == 0 {
		s.t.Error("sent again before the last response was closed")
	}
	s.bodies = append(s.bodies, &counter{left: 10})
	return &http.Response{
		StatusCode: s.statuses[n], Header: http.Header{"X-N": {string(rune('1' + n))}, "Content-Length": {"10"}},
		Body: s.bodies[n], ContentLength: 10,
	}, nil
}

func TestRoundTripperReplaysBodies(t *testing.T) {
	for _, c := range []struct {
		name     string
		method   string
		body     func(t *testing.T) io.Reader
		length   int64
		cfg      Config
		key      bool
		want     int
		sentOnce uint64
	}{
		{name: "GetBody", method: "PUT", body: func(*testing.T) io.Reader { return strings.NewReader("hello") }, length: 5, want: 200},
		{name: "no body", method: "GET", body: func(*testing.T) io.Reader { return nil }, want: 200},
		{name: "buffered, length unknown", method: "PUT", body: stream5, length: -1, cfg: Config{BodyBuffer: 5}, want: 200},
		{name: "buffered, length known", method: "PUT", body: stream5, length: 5, cfg: Config{BodyBuffer: 5}, want: 200},
		{name: "no buffer", method: "PUT", body: stream5, length: -1, want: 503, sentOnce: 1},
		{name: "buffer too small", method: "PUT", body: stream5, length: -1, cfg: Config{BodyBuffer: 4}, want: 503, sentOnce: 1},
		{name: "buffer too small, and known", method: "PUT", body: stream5, length: 5, cfg: Config{BodyBuffer: 4}, want: 503, sentOnce: 1},
		{name: "not idempotent", method: "POST", body: stream5, length: -1, cfg: Config{BodyBuffer: 5}, want: 503},
		{name: "with a key", method: "POST", body: stream5, length: -1, cfg: Config{BodyBuffer: 5}, key: true, want: 200},
		{name: "opted in", method: "POST", body: stream5, length: -1, cfg: Config{BodyBuffer: 5, Idempotent: func(*http.Request) bool { return true }}, want: 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body := c.body(t)
				req := newRequest(t, c.method, "http://a/x", body)
				if c.length != 0 {
					req.ContentLength = c.length
				}
				if c.key {
					req.Header.Set("Idempotency-Key", "k")
				}
				before, header := *req, req.Header.Clone()
				backend := &scripted{t: t, statuses: []int{503, 200}}
				rt := RoundTripper(retried(backend, c.cfg), c.cfg)
				res, err := rt.RoundTrip(req)
				if err != nil || res.StatusCode != c.want {
					t.Fatalf("%v, %v; want %d", res, err, c.want)
				}
				for _, got := range backend.got {
					if body != nil && got != "hello" {
						t.Errorf("the server got %q", got)
					}
				}
				if res.Request != req {
					t.Error("the response is one to another request")
				}
				res.Body.Close()
				if src, ok := body.(*source); ok {
					src.wantClosed(1)
				}
				if !reflect.DeepEqual(req.Header, header) || req.Body != before.Body || req.URL != before.URL || req.ContentLength != before.ContentLength {
					t.Error("the request was changed")
				}
				if s := rt.Stats(); s.SentOnce != c.sentOnce {
					t.Errorf("%+v, want SentOnce %d", s, c.sentOnce)
				}
			})
		})
	}
}

func stream5(t *testing.T) io.Reader { return newSource(t, "hello") }

func TestRoundTripperSendsAnUnreadBodyAgainWhateverTheMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, tries := newSource(t, "hello"), 0
		rt := RoundTripper(retried(tripFunc(func(req *http.Request) (*http.Response, error) {
			if tries++; tries < 3 {
				req.Body.Close()
				return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
			}
			wantRead(t, req.Body, "hello")
			req.Body.Close()
			return &http.Response{StatusCode: 200}, nil
		})))
		res, err := rt.RoundTrip(newRequest(t, "POST", "http://a", src))
		if err != nil || res.StatusCode != 200 || tries != 3 {
			t.Errorf("%v, %v after %d tries", res, err, tries)
		}
		src.wantClosed(1)
	})
}

func TestRoundTripperClosesTheBodyOnEveryWay(t *testing.T) {
	full := limit.NewConcurrency(service(Transport(tripFunc(nil))), limit.NewLimiter(0))
	boom := belfry.Of(func(context.Context, *http.Request) (*http.Response, error) { panic("boom") })
	failing := belfry.Of(func(context.Context, *http.Request) (*http.Response, error) { return nil, errors.New("no") })
	forgetful := belfry.Of(func(context.Context, *http.Request) (*http.Response, error) { return nil, nil })
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, svc := range map[string]service{
		"refused": full, "panic": boom, "error": failing, "no response": forgetful,
		"sent": Transport(tripFunc(func(*http.Request) (*http.Response, error) { return nil, errors.New("reset") })),
		"not sent": Transport(tripFunc(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
		})),
	} {
		src := newSource(t, "hello")
		req := newRequest(t, "POST", "http://a", src).WithContext(gone)
		if name != "refused" {
			req = req.WithContext(t.Context())
		}
		var res *http.Response
		var err error
		panicked := panicOf(func() { res, err = RoundTripper(svc).RoundTrip(req) })
		if res != nil || (err == nil) != (name == "panic") || (panicked != nil) != (name == "panic") {
			t.Errorf("%s: %v, %v, panic %v", name, res, err, panicked)
		}
		src.wantClosed(1)
	}
}

func TestRoundTripperReturnsABodyAlways(t *testing.T) {
	svc := belfry.Of(func(context.Context, *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200}, nil
	})
	req := newRequest(t, "GET", "http://a", nil)
	res, err := RoundTripper(svc).RoundTrip(req)
	if err != nil || res.Body != http.NoBody || res.Request != req {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestRoundTripperKeepsTheBodyOpenWhileItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newSource(t, "hello")
		goOn := make(chan struct{})
		sent := make(chan struct{})
		rt := RoundTripper(Transport(tripFunc(func(req *http.Request) (*http.Response, error) {
			go func() {
				defer close(sent)
				<-goOn
				wantRead(t, req.Body, "hello")
				req.Body.Close()
			}()
			return &http.Response{StatusCode: 200}, nil // an early answer
		})))
		if _, err := rt.RoundTrip(newRequest(t, "POST", "http://a", src)); err != nil {
			t.Fatal(err)
		}
		src.wantClosed(0)
		close(goOn)
		<-sent
		src.wantClosed(1)
	})
}

// noRoomAgain refuses every Acquire but the first.
type noRoomAgain struct {
	service
	acquired int
	err      error
}

func (n *noRoomAgain) Acquire(ctx context.Context) (belfry.Permit, error) {
	if n.acquired++; n.acquired > 1 {
		return belfry.Permit{}, n.err
	}
	return n.service.Acquire(ctx)
}

func TestRoundTripperAnswersWithWhatWasDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &scripted{t: t, statuses: []int{503}}
		closed := &belfry.Rejection{Layer: "balance", Reason: "closed", Err: belfry.ErrClosed}
		inner := &noRoomAgain{service: Transport(backend), err: closed}
		svc := retry.New(service(inner), retry.Config{}, Semantics())
		rt := RoundTripper(svc)
		res, err := rt.RoundTrip(newRequest(t, "GET", "http://a", nil))
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != 503 || res.Header.Get("X-N") != "1" || res.Header.Get(ReasonHeader) != "no further attempt" {
			t.Errorf("%d %v", res.StatusCode, res.Header)
		}
		if res.ContentLength != 0 || res.Header.Get("Content-Length") != "" || res.Body != http.NoBody {
			t.Errorf("a body of %d bytes (%q) was promised", res.ContentLength, res.Header.Get("Content-Length"))
		}
		if s := rt.Stats(); s.Emptied != 1 {
			t.Errorf("%+v", s)
		}

		inner.acquired = 0
		backend.got = nil
		res, err = rt.RoundTrip(newRequest(t, "HEAD", "http://a", nil))
		if err != nil || res.ContentLength != 10 || res.Header.Get("Content-Length") != "10" {
			t.Errorf("HEAD: %v, %v: the length is that of what GET would bring", res, err)
		}
	})
}

func TestRoundTripperReturnsAnErrorToACallerWhoseTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &scripted{t: t, statuses: []int{503}}
		limiter := limit.NewLimiter(1)
		svc := retry.New(service(limit.NewConcurrency(service(Transport(backend)), limiter)), retry.Config{Backoff: retry.Backoff{Min: time.Second}}, Semantics())
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		time.AfterFunc(time.Millisecond, func() { _ = limiter.Resize(0) })
		_, err := RoundTripper(svc).RoundTrip(newRequest(t, "GET", "http://a", nil).WithContext(ctx))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if te, ok := err.(interface{ Timeout() bool }); !ok || !te.Timeout() {
			t.Errorf("%T does not say that it is a timeout", err)
		}
		if e, ok := errors.AsType[*retry.Error](err); !ok || e.Outcome.Kind != belfry.Failure {
			t.Errorf("%v says nothing of the attempt", err)
		}
	})
}

func TestRoundTripperReturnsTransportErrorsAsTheyAre(t *testing.T) {
	reset := errors.New("connection reset")
	rt := RoundTripper(Transport(tripFunc(func(*http.Request) (*http.Response, error) { return nil, reset })))
	if _, err := rt.RoundTrip(newRequest(t, "GET", "http://a", nil)); err != reset {
		t.Errorf("got %v (%T), want the transport's own", err, err)
	}
	rt = RoundTripper(Transport(tripFunc(func(*http.Request) (*http.Response, error) { return nil, context.DeadlineExceeded })))
	_, err := (&http.Client{Transport: rt}).Get("http://a")
	if !os.IsTimeout(err) {
		t.Errorf("the client's error %v is not a timeout", err)
	}
	waiting := belfry.Of(func(context.Context, *http.Request) (*http.Response, error) {
		return nil, errors.Join(errors.New("waited"), context.DeadlineExceeded)
	})
	if _, err := (&http.Client{Transport: RoundTripper(waiting)}).Get("http://a"); !os.IsTimeout(err) {
		t.Errorf("the client's error %v is not a timeout", err)
	}
}

func TestRoundTripperPassesTheWishNotToRetryOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &scripted{t: t, statuses: []int{503, 503, 503, 503}}
		broke := budget.New(budget.Config{Ratio: 0.001, Reserve: 0.001})
		below := RoundTripper(retry.New(service(Transport(backend)), retry.Config{Budget: broke}, Semantics()))
		res, err := below.RoundTrip(newRequest(t, "GET", "http://a", nil))
		if err != nil || res.Header.Get(RetryHeader) != "no" {
			t.Fatalf("%v, %v: it should ask not to be tried again", res, err)
		}
		res.Body.Close()
		network := tripFunc(func(req *http.Request) (*http.Response, error) {
			return below.RoundTrip(req.WithContext(context.Background())) // a context does not cross it
		})
		above := RoundTripper(retried(network))
		if _, err := above.RoundTrip(newRequest(t, "GET", "http://a", nil)); err != nil {
			t.Fatal(err)
		}
		if len(backend.got) != 2 {
			t.Errorf("sent %d times, want once for each request", len(backend.got))
		}
	})
}

// What must not be cut off: a body that is larger than any buffer on the way, read slowly, under a deadline that is over by then.
func TestBodiesOutliveTheirAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big := bytes.Repeat([]byte("belfry"), 512<<10/6)
		n := 0
		rt := tripFunc(func(req *http.Request) (*http.Response, error) {
			if n++; n < 3 {
				return &http.Response{StatusCode: 503, Body: http.NoBody}, nil
			}
			return response(&boundBody{Reader: bytes.NewReader(big), ctx: req.Context()}), nil
		})
		limiter := limit.NewLimiter(1)
		svc := limit.NewConcurrency(retried(rt), limiter, Semantics())
		res, err := RoundTripper(svc).RoundTrip(newRequest(t, "GET", "http://a", nil))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if limiter.Stats().InFlight != 1 {
			t.Error("the place is free although the body is unread")
		}
		got, err := io.ReadAll(res.Body)
		if err != nil || !bytes.Equal(got, big) {
			t.Errorf("read %d bytes of %d, %v", len(got), len(big), err)
		}
		if limiter.Stats().InFlight != 0 {
			t.Error("the place is not free although the body was read to its end")
		}
	})
}

// A boundBody fails once its context has ended, as those of http.Transport do.
type boundBody struct {
	io.Reader
	ctx context.Context
}

func (b *boundBody) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.Reader.Read(p[:min(len(p), 1000)])
}

func (b *boundBody) Close() error { return nil }
