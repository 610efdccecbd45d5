package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/belfryhttp"
)

var errNoNames = errors.New("this resolver knows no name")

// nameless has no name resolved until the end of the test.
func nameless(t *testing.T) {
	t.Helper()
	was := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = was })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errNoNames
	}}
}

func TestNamesThatCannotBeResolved(t *testing.T) {
	for target, c := range map[string]struct {
		status int
		reason string
	}{
		"http://nobody.invalid":            {http.StatusBadGateway, "no connection"},
		"https://nobody.invalid":           {http.StatusBadGateway, "no connection"},
		"dns:///nobody.invalid:80":         {http.StatusServiceUnavailable, "balance: no endpoint discovered"},
		"srv:///_http._tcp.nobody.invalid": {http.StatusServiceUnavailable, "balance: no endpoint discovered"},
	} {
		t.Run(target, func(t *testing.T) {
			nameless(t)
			p := start(t, func(c *Config) { c.BufferWait = 200 * time.Millisecond }, target)
			if c.status == http.StatusServiceUnavailable {
				eventually(t, "the error of discovery", func() bool { return p.server.State().Discovery != nil })
			}
			res, _ := p.fetch(t, http.MethodPost, "/", "x")
			if reason := res.Header.Get(belfryhttp.ReasonHeader); res.StatusCode != c.status || !strings.HasPrefix(reason, c.reason) {
				t.Errorf("answered %s, %q; want %d, %s", res.Status, reason, c.status, c.reason)
			}
			if text := p.log.String(); !strings.Contains(text, "nobody.invalid") {
				t.Errorf("the log does not name it:\n%s", text)
			}
		})
	}
}

func TestANameThatCannotBeResolvedTakesNothingFromTheOthers(t *testing.T) {
	nameless(t)
	good := server(t, status(http.StatusNoContent))
	p := start(t, nil, "http://nobody.invalid", "dns:///nobody.invalid:81", good)
	for i := range 20 {
		if res, _ := p.fetch(t, http.MethodPost, "/", "x"); res.StatusCode != http.StatusNoContent {
			t.Errorf("request %d is answered %s", i, res.Status)
		}
	}
}

// A file may list nobody, which is known only when the proxy runs.
func TestAnEmptyListOfServers(t *testing.T) {
	list := filepath.Join(t.TempDir(), "targets")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(list+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(list+".new", list); err != nil {
			t.Fatal(err)
		}
	}
	write("# nobody yet\n")
	p := start(t, func(c *Config) { c.DiscoveryInterval, c.BufferWait = 100*time.Millisecond, 200*time.Millisecond }, "file://"+list)
	eventually(t, "the error of discovery", func() bool { return p.server.State().Discovery != nil })
	res, _ := p.fetch(t, http.MethodGet, "/", "")
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("answered %s, %v", res.Status, res.Header)
	}
	good := server(t, status(http.StatusNoContent))
	write(good + "\n")
	eventually(t, "the server that is listed by now", func() bool { return p.keys() == good })
	write("")
	if res, _ := p.fetch(t, http.MethodGet, "/", ""); res.StatusCode != http.StatusNoContent {
		t.Errorf("answered %s", res.Status)
	}
	eventually(t, "the error of discovery", func() bool { return p.server.State().Discovery != nil })
	if res, _ := p.fetch(t, http.MethodGet, "/", ""); res.StatusCode != http.StatusNoContent || p.keys() != good {
		t.Errorf("answered %s; the last servers known are not kept", res.Status)
	}
}

// Two targets may turn out to name one server.
func TestTwoTargetsWithOneServer(t *testing.T) {
	good := server(t, status(http.StatusNoContent))
	list := filepath.Join(t.TempDir(), "targets")
	if err := os.WriteFile(list, []byte(good+"\n"+good+"/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, good, "file://"+list)
	eventually(t, "both targets", func() bool {
		targets := p.server.State().Targets
		return len(targets) == 2 && targets[0].Endpoints == 1 && targets[1].Endpoints == 1
	})
	if res, _ := p.fetch(t, http.MethodGet, "/", ""); res.StatusCode != http.StatusNoContent || p.keys() != good {
		t.Errorf("answered %s by %s, want one endpoint", res.Status, p.keys())
	}
}

func TestHeadersOfAMebibyte(t *testing.T) {
	const mebibyte = 1 << 20
	long := strings.Repeat("x", mebibyte)
	echo := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			w.Header().Set("X-Long", long)
		}
		fmt.Fprint(w, len(r.Header.Get("X-Long")))
	})
	for name, h2c := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run("of a request over "+name, func(t *testing.T) {
			p := start(t, nil, echo)
			if h2c {
				protocols := new(http.Protocols)
				protocols.SetUnencryptedHTTP2(true)
				p.client.Transport.(*http.Transport).Protocols = protocols
			}
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url, nil)
			req.Header.Set("X-Long", long)
			// Whoever is still writing may hear of nothing but the end of the connection.
			if res, err := p.client.Do(req); err == nil {
				res.Body.Close()
				if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
					t.Errorf("answered %s", res.Status)
				}
			}
			if n := p.server.State().Requests; n.Total != 0 {
				t.Errorf("%d requests came in", n.Total)
			}
			// The proxy is none the worse for it.
			if res, body := p.fetch(t, http.MethodGet, "/", "", "X-Long", "abc"); res.StatusCode != http.StatusOK || body != "3" {
				t.Errorf("the next is answered %s, %q", res.Status, body)
			}
		})
	}
	t.Run("of a request, answered 431 to whoever listens", func(t *testing.T) {
		p := start(t, nil, echo)
		conn, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		go func() { fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nX-Long: %s\r\n\r\n", long) }()
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("answered %+v, %v", res, err)
		}
	})
	t.Run("of a request, where they are allowed", func(t *testing.T) {
		// The server behind has to allow them too.
		target := serverOf(t, func(s *http.Server) { s.MaxHeaderBytes = 2 * mebibyte }, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, len(r.Header.Get("X-Long"))) })
		p := start(t, func(c *Config) { c.Client.HeaderBytes = 2 * mebibyte }, target)
		if res, body := p.fetch(t, http.MethodGet, "/", "", "X-Long", long); res.StatusCode != http.StatusOK || body != fmt.Sprint(mebibyte) {
			t.Errorf("answered %s, %q", res.Status, body)
		}
	})
	t.Run("of an answer", func(t *testing.T) {
		p := start(t, func(c *Config) { c.EndpointLimit, c.Limit = 1, 1 }, echo)
		for range 3 { // the place is free again
			if res, _ := p.fetch(t, http.MethodGet, "/long", ""); res.StatusCode != http.StatusBadGateway {
				t.Errorf("answered %s", res.Status)
			}
		}
	})
}

// Answers have no body for four reasons, and then must not keep a place, nor make the client wait for one.
func TestAnAnswerWithoutABody(t *testing.T) {
	target := server(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/head":
			w.Header().Set("Content-Length", "5")
		case "/204":
			w.WriteHeader(http.StatusNoContent)
		case "/304":
			w.Header().Set("Etag", `"a"`)
			w.WriteHeader(http.StatusNotModified)
		case "/0":
			w.Header().Set("Content-Length", "0")
		}
	})
	p := start(t, func(c *Config) { c.Limit, c.EndpointLimit, c.Buffer = 1, 1, 1 }, target)
	for _, c := range []struct {
		method, path string
		status       int
		length       int64
	}{
		{http.MethodHead, "/head", 200, 5},
		{http.MethodGet, "/204", 204, 0},
		{http.MethodGet, "/304", 304, 0},
		{http.MethodGet, "/0", 200, 0},
		{http.MethodPost, "/204", 204, 0},
	} {
		for range 2 {
			res, body := p.fetch(t, c.method, c.path, "")
			if res.StatusCode != c.status || body != "" || max(res.ContentLength, 0) != c.length {
				t.Errorf("%s %s is answered %s, %d bytes, %q", c.method, c.path, res.Status, res.ContentLength, body)
			}
		}
	}
	eventually(t, "free places", func() bool {
		s := p.server.State()
		return s.Limit.InFlight+s.Limit.Reserved == 0 && s.Requests.InFlight == 0
	})
}

// A request whose body is gone is not sent again: its client gets the answer that there is.
func TestARetryWhoseBodyCannotBeReplayed(t *testing.T) {
	const most = 1000
	for name, c := range map[string]struct {
		body    io.Reader
		retries uint64
	}{
		"longer than what is kept":      {strings.NewReader(strings.Repeat("x", most+1)), 0},
		"longer, and of unknown length": {io.MultiReader(strings.NewReader(strings.Repeat("x", most+1))), 0},
		"kept":                          {strings.NewReader(strings.Repeat("x", most)), 2},
		"kept, and of unknown length":   {io.MultiReader(strings.NewReader(strings.Repeat("x", most))), 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, func(c *Config) { c.ReplayBytes = most }, refusing(t))
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodPut, p.url, c.body)
			if err != nil {
				t.Fatal(err)
			}
			res, err := p.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			s, lost := p.server.State().Retry, uint64(1)
			if c.retries > 0 {
				lost = 0
			}
			if res.StatusCode != http.StatusServiceUnavailable || s.Retries != c.retries || s.NotCopyable != lost {
				t.Errorf("answered %s after %d retries, want %d; counted %+v", res.Status, s.Retries, c.retries, s)
			}
			if own := res.Header.Get(belfryhttp.ReasonHeader); own != "" {
				t.Errorf("the answer is not the server's: %s", own)
			}
		})
	}
}

func TestATakenAdminAddressIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := configure(func(c *Config) { c.Admin = l.Addr().String() }, "http://a")
	code, err := run(cfg, Options{Admin: func(*Server) http.Handler { return http.NotFoundHandler() }}, slog.New(slog.DiscardHandler), nil)
	want := "--admin " + cfg.Admin + ": another program listens there"
	if code != ExitFailed || err == nil || err.Error() != want {
		t.Errorf("exit code %d, %v; want %s", code, err, want)
	}
}
