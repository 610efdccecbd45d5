package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/belfry-go/belfry/belfryhttp"
	"github.com/belfry-go/belfry/discover"
)

// FuzzTargets looks for a --to that is taken and cannot be used, or that is refused without saying what is accepted.
func FuzzTargets(f *testing.F) {
	for _, seed := range []string{
		"http://a", "http://a,https://b:8443,h2c://[::1]:80", "http://A:080/", "dns:///a:80?scheme=https", "srv:///_http._tcp.a", "file:///etc/x%20y",
		"", ",", " http://a ", "http://a,http://A:80/", "a:80", "ftp://a", "http://u@a", "http://a/x", "http://a?", "http://a#", "http://[fe80::1%25eth0]:1",
		"http://a:0", "http://a:65536", "http://%41", "http://a\\n", "dns://x/a:80", "file://", "HTTP://[::ffff:1.2.3.4]", "http://ü",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, to string) {
		given := strings.Split(to, ",")
		targets, err := ParseTargets(given)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "--to must be "+AcceptedTargets+"; ") || strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("%q: %q", to, err)
			}
			return
		}
		if len(targets) != len(given) {
			t.Fatalf("%q became %q", to, targets)
		}
		if again, err := ParseTargets(targets); err != nil || !slices.Equal(again, targets) {
			t.Errorf("%q is spelled %q, and that %q, %v", to, targets, again, err)
		}
		for _, target := range targets {
			usable(t, target)
		}
	})
}

// usable fails unless a target can be used by all that comes after ParseTargets.
func usable(t *testing.T, target string) {
	t.Helper()
	if isSource(target) {
		if _, err := discover.Parse(t.Context(), []string{target}, discover.Config{Scheme: "http"}); err != nil {
			t.Errorf("%q: %v", target, err)
		}
		return
	}
	u, err := url.Parse(target)
	if err != nil || u.Hostname() == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
		t.Fatalf("%q is %+v, %v", target, u, err)
	}
	if port, err := strconv.Atoi(u.Port()); err != nil || port < 1 || port > 65535 {
		t.Errorf("%q has port %q", target, u.Port())
	}
	for change, err := range discover.List(target) {
		if err != nil || change.ID() != target {
			t.Errorf("%q is known as %q, %v", target, change.ID(), err)
		}
	}
	_, base, err := splitAddr(target + "#1")
	if err != nil {
		t.Fatalf("%q: %v", target, err)
	}
	if _, err := belfryhttp.Endpoint(base, belfryhttp.Config{}); err != nil {
		t.Errorf("%q cannot be an endpoint: %v", target, err)
	}
}

// A capture is a transport that keeps the request.
type capture struct{ req *http.Request }

var errCaptured = errors.New("captured")

func (c *capture) RoundTrip(req *http.Request) (*http.Response, error) {
	c.req = req
	return nil, errCaptured
}

// taken is a field name as a server sees it that makes no difference between _ and -, nor between cases: a CGI variable.
func taken(name string) string { return strings.ReplaceAll(strings.ToUpper(name), "-", "_") }

// FuzzForwarded sends what a peer wrote through the proxy. Whoever is not trusted must not be able to say who it is, or what it
// asked for; of whoever is, what it says about others is passed on, with its own address after it.
func FuzzForwarded(f *testing.F) {
	const stranger, friend = "192.0.2.7", "10.1.2.3"
	for _, seed := range []string{
		"X-Forwarded-For: 6.6.6.6", "x-forwarded-for: 6.6.6.6\r\nX-FORWARDED-FOR: 7.7.7.7, 8.8.8.8", "X_Forwarded_For: 6.6.6.6", "X-Forwarded_For: 6.6.6.6",
		"Forwarded: for=6.6.6.6", "X-Real-IP: 6.6.6.6", "X_REAL_IP: 6.6.6.6", "Connection: X-Forwarded-For\r\nX-Forwarded-For: 6.6.6.6",
		"Connection: close, X-Forwarded-Host\r\nX-Forwarded-Host: evil\r\nX-Forwarded-Proto: https", "X-Forwarded-For:\r\nX-Forwarded-Port: 1",
		"Transfer-Encoding: chunked\r\nTrailer: X-Forwarded-For", "X-Forwarded-For: 6.6.6.6\r\n X-Folded: 1", "True-Client-IP: 6.6.6.6", "Host: evil",
		"Connection: Upgrade\r\nUpgrade: websocket\r\nX-Forwarded-Server: a", "X-Forwarded-For: \"\x80\"",
	} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	log := slog.New(slog.DiscardHandler)
	f.Fuzz(func(t *testing.T, fields string, trusted bool) {
		in, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET / HTTP/1.1\r\nHost: shop.example\r\n" + fields + "\r\n\r\n")))
		if err != nil {
			return
		}
		for name := range in.Header {
			if strings.ContainsAny(name, " \t\"(),/:;<=>?@[\\]{}") {
				return // which the server refuses
			}
		}
		peer := stranger
		if trusted {
			peer = friend
		}
		in.RemoteAddr = net.JoinHostPort(peer, "1234")
		said := in.Header.Clone()
		out := &capture{}
		cfg := Defaults()
		cfg.TrustedForwarders = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
		w := httptest.NewRecorder()
		newHandler(out, cfg, log, func(Record) {}).ServeHTTP(w, in.WithContext(context.WithoutCancel(t.Context())))
		if out.req == nil {
			return // answered without asking anybody
		}
		_, _ = io.Copy(io.Discard, w.Body)
		wantForwarded(t, out.req, said, in.Host, peer, trusted)
	})
}

func wantForwarded(t *testing.T, out *http.Request, said http.Header, host, peer string, trusted bool) {
	t.Helper()
	want := map[string][]string{"X-Forwarded-For": {peer}, "X-Forwarded-Host": {host}, "X-Forwarded-Proto": {"http"}}
	if trusted {
		if prior := said["X-Forwarded-For"]; len(prior) > 0 {
			want["X-Forwarded-For"] = []string{strings.Join(prior, ", ") + ", " + peer}
		}
		for name, values := range said {
			if strings.HasPrefix(name, "X-Forwarded-") && name != "X-Forwarded-For" && !strings.Contains(name, "_") {
				want[name] = values
			}
		}
	}
	for name, values := range want {
		if got := out.Header[name]; !slices.Equal(got, values) {
			t.Errorf("%s is %q, want %q", name, got, values)
		}
	}
	for name, values := range out.Header {
		variable := taken(name)
		_, wanted := want[name]
		if variable == "FORWARDED" || strings.HasPrefix(variable, "X_FORWARDED_") && !wanted ||
			!trusted && (variable == "X_REAL_IP" || variable == "TRUE_CLIENT_IP" || variable == "X_CLIENT_IP") {
			t.Errorf("%s is passed on as %q", name, values)
		}
		if all := name + strings.Join(values, ""); strings.ContainsAny(all, "\r\n\x00") || strings.ContainsAny(name, " :\t") || name == "" {
			t.Errorf("%q: %q is no field", name, values)
		}
	}
	for name := range out.Trailer {
		if strings.HasPrefix(taken(name), "X_FORWARDED_") {
			t.Errorf("the trailer %s is passed on", name)
		}
	}
}
