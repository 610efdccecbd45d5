package belfryhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
)

func TestClassifyResponses(t *testing.T) {
	get := newRequest(t, "GET", "http://a", nil)
	post := newRequest(t, "POST", "http://a", nil)
	for _, c := range []struct {
		req    *http.Request
		status int
		kind   belfry.Kind
		retry  bool
	}{
		{get, 101, belfry.Success, false},
		{get, 200, belfry.Success, false},
		{get, 302, belfry.Success, false},
		{get, 400, belfry.Success, false},
		{get, 404, belfry.Success, false},
		{get, 429, belfry.Failure, true},
		{get, 500, belfry.Failure, false},
		{get, 501, belfry.Success, false},
		{get, 502, belfry.Failure, true},
		{get, 503, belfry.Failure, true},
		{get, 504, belfry.Failure, true},
		{get, 505, belfry.Success, false},
		{get, 599, belfry.Failure, false},
		{post, 200, belfry.Success, false},
		{post, 429, belfry.Failure, false},
		{post, 503, belfry.Failure, false},
		{nil, 503, belfry.Failure, false},
	} {
		res := &http.Response{StatusCode: c.status, Request: c.req}
		if out := mustSemantics().Judge(res, nil); out != (belfry.Outcome{Kind: c.kind, Retry: c.retry}) {
			t.Errorf("%v %d: %+v", c.req, c.status, out)
		}
	}
}

func TestClassifyReadsRetryAfter(t *testing.T) {
	res := &http.Response{StatusCode: 503, Request: newRequest(t, "GET", "http://a", nil), Header: http.Header{"Retry-After": {"7"}}}
	if out := mustSemantics().Judge(res, nil); out.RetryAfter != 7*time.Second {
		t.Errorf("%+v", out)
	}
}

func TestClassifyByConfig(t *testing.T) {
	get := newRequest(t, "GET", "http://a", nil)
	patch := newRequest(t, "PATCH", "http://a", nil)
	sem := mustSemantics(Config{
		Idempotent:    func(req *http.Request) bool { return req.Method == "PATCH" },
		RetryStatuses: []int{409},
		Failed:        func(res *http.Response) bool { return res.StatusCode == 418 },
	})
	for _, c := range []struct {
		req    *http.Request
		status int
		want   belfry.Outcome
	}{
		{patch, 409, belfry.Outcome{Kind: belfry.Failure, Retry: true}},
		{get, 409, belfry.Outcome{Kind: belfry.Failure}},
		{patch, 418, belfry.Outcome{Kind: belfry.Failure}},
		{patch, 503, belfry.Outcome{}},
	} {
		if out := sem.Judge(&http.Response{StatusCode: c.status, Request: c.req}, nil); out != c.want {
			t.Errorf("%s %d: %+v, want %+v", c.req.Method, c.status, out, c.want)
		}
	}
	none := mustSemantics(Config{RetryStatuses: []int{}})
	if out := none.Judge(&http.Response{StatusCode: 503, Request: get}, nil); out != (belfry.Outcome{Kind: belfry.Failure}) {
		t.Errorf("with no RetryStatuses: %+v", out)
	}
}

func TestClassifyErrors(t *testing.T) {
	reset := errors.New("connection reset")
	get, post := newRequest(t, "GET", "http://a", nil), newRequest(t, "POST", "http://a", nil)
	broken := &belfry.Outcome{Kind: belfry.Failure, Retry: true}
	for name, c := range map[string]struct {
		err  error
		want belfry.Outcome
	}{
		"sent, idempotent":       {&Error{Request: get, Err: reset}, *broken},
		"sent, not idempotent":   {&Error{Request: post, Err: reset}, belfry.Outcome{Kind: belfry.Failure}},
		"sent, timed out":        {&Error{Request: get, Err: context.DeadlineExceeded}, *broken},
		"sent, caller left":      {&Error{Request: get, Err: context.Canceled}, belfry.Outcome{Kind: belfry.Ignored}},
		"of a request unknown":   {reset, belfry.Outcome{Kind: belfry.Failure}},
		"caller left":            {context.Canceled, belfry.Outcome{Kind: belfry.Ignored}},
		"refused here":           {&belfry.Rejection{Layer: "limit", RetryAfter: time.Second}, belfry.Outcome{Kind: belfry.Ignored, RetryAfter: time.Second}},
		"no connection":          {&belfry.Rejection{Layer: LayerDial, Err: reset}, *broken},
		"no connection, and bye": {&belfry.Rejection{Layer: LayerDial, Err: context.Canceled}, belfry.Outcome{Kind: belfry.Ignored}},
		"unfit":                  {&Error{Request: get, Err: reset, fault: ofHead}, belfry.Outcome{Kind: belfry.Ignored}},
	} {
		if out := mustSemantics().Judge(nil, c.err); out != c.want {
			t.Errorf("%s: %+v, want %+v", name, out, c.want)
		}
	}
}

func TestIdempotent(t *testing.T) {
	for method, want := range map[string]bool{
		"": true, "GET": true, "HEAD": true, "OPTIONS": true, "TRACE": true, "PUT": true, "DELETE": true,
		"POST": false, "PATCH": false, "CONNECT": false, "get": false, "PURGE": false,
	} {
		if got := Idempotent(&http.Request{Method: method}); got != want {
			t.Errorf("%q: %v", method, got)
		}
	}
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		req := newRequest(t, "POST", "http://a", nil)
		req.Header.Set(name, "1")
		if !Idempotent(req) {
			t.Errorf("%s was not seen", name)
		}
	}
}

func TestCopyOfARequestWithGetBody(t *testing.T) {
	req := newRequest(t, "PUT", "http://a/x", strings.NewReader("hello"))
	opened := 0
	getBody := req.GetBody
	req.GetBody = func() (io.ReadCloser, error) { opened++; return getBody() }
	again, ok := mustSemantics().Replay(req)
	if !ok || opened != 0 {
		t.Fatalf("ok = %v; the body was made %d times before anybody read it", ok, opened)
	}
	wantRead(t, req.Body, "hello")
	third, ok := mustSemantics().Replay(again)
	if !ok {
		t.Fatal("a copy has no copy")
	}
	wantRead(t, again.Body, "hello")
	wantRead(t, third.Body, "hello")
	if again.ContentLength != 5 || opened != 2 {
		t.Errorf("length %d, made %d times", again.ContentLength, opened)
	}
}

func TestCopyIsThePolicysToChange(t *testing.T) {
	for _, body := range []io.Reader{nil, strings.NewReader("hello")} {
		req := newRequest(t, "PUT", "http://a/x", body)
		req.Header.Set("X-Try", "1")
		again, _ := mustSemantics().Replay(req)
		again.Header.Set("X-Try", "2")
		again.URL.Host = "b"
		if req.Header.Get("X-Try") != "1" || req.URL.Host != "a" {
			t.Errorf("changing the copy changed the request: %v %v", req.Header, req.URL)
		}
	}
}

func TestCopyOfARequestThatIsSentOnce(t *testing.T) {
	req := newRequest(t, "PUT", "http://a", newSource(t, "hello"))
	if _, ok := mustSemantics().Replay(req); ok {
		t.Error("copied a body that may have been read")
	}
	// Copy alone says so: then whoever tries again can count what could not be.
	if out := mustSemantics().Judge(&http.Response{StatusCode: 503, Request: req}, nil); !out.Retry {
		t.Error("asked for no retry because of the body")
	}

	// What is known to be unread can be sent, until it is read.
	u := &upload{src: newSource(t, "hello"), owned: true}
	req.Body = &part{up: u}
	if _, ok := mustSemantics().Replay(req); !ok {
		t.Error("did not copy a body that was not read")
	}
	_, _ = attach(t, u).Read(make([]byte, 1))
	if _, ok := mustSemantics().Replay(req); ok {
		t.Error("copied a body that was read")
	}
}

func TestConfigValidate(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, ""},
		{Config{RetryStatuses: []int{400, 599}, DrainBytes: -1}, ""},
		{Config{RetryStatuses: []int{503, 399}}, "RetryStatuses[1] must be from 400 to 599, got 399"},
		{Config{RetryStatuses: []int{600}}, "RetryStatuses[0] must be from 400 to 599, got 600"},
		{Config{BodyBuffer: -1}, "BodyBuffer must not be below 0, got -1"},
		{Config{DrainTime: -time.Second}, "DrainTime must not be below 0, got -1s"},
		{Config{IdleConns: -1}, "IdleConns must not be below 0, got -1"},
	} {
		err := c.cfg.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("got %v, want %q", err, c.want)
		}
		if err == nil {
			continue
		}
		for name, make := range map[string]func(){
			"Semantics":    func() { Semantics(c.cfg) },
			"RoundTripper": func() { RoundTripper(nil, c.cfg) },
		} {
			if got := panicOf(make); got == nil || got.(error).Error() != err.Error() {
				t.Errorf("%s panicked with %v, want %v", name, got, err)
			}
		}
	}
	if panicOf(func() { Semantics(Config{}, Config{}) }) == nil {
		t.Error("took two Configs")
	}
}

func panicOf(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

func TestBodyCost(t *testing.T) {
	cost := BodyCost(1000)
	for length, want := range map[int64]int{-1: 1, 0: 1, 999: 1, 1000: 2, 5500: 6} {
		if got := cost(&http.Request{ContentLength: length}); got != want {
			t.Errorf("a body of %d bytes costs %d, want %d", length, got, want)
		}
	}
	sem := Semantics(Config{Cost: cost})
	if got := sem.Work(&http.Request{ContentLength: 3000}); got != 4 {
		t.Errorf("it is %d work, want 4", got)
	}
	sem = Semantics()
	if got := sem.Work(&http.Request{ContentLength: 3000}); got != 1 {
		t.Errorf("without a cost it is %d work, want 1", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("no bytes were accepted")
		}
	}()
	BodyCost(0)
}
