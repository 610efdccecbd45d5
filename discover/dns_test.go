package discover

import (
	"context"
	"errors"
	"iter"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// quick looks again at once, so that a test waits for an answer and for nothing else.
func quick(s *nameServer) Config {
	return Config{Scheme: "http", Interval: time.Millisecond, Timeout: 30 * time.Second, Resolver: s.resolver()}
}

// A script reads a source step by step, in the goroutine of the test.
type script struct {
	t    *testing.T
	next func() (Change, error, bool)
	set  []Change
}

func reading(t *testing.T, source iter.Seq2[Change, error], err error) *script {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	next, stop := iter.Pull2(source)
	t.Cleanup(stop)
	return &script{t: t, next: next}
}

// want waits for so many changes, and compares them. What is said again is passed over, and errors too, unless the first
// of log begins with "error", after which comes a part of its text.
func (s *script) want(log ...string) {
	s.t.Helper()
	var got []string
	for len(got) < len(log) {
		change, err, ok := s.next()
		text, isError := strings.CutPrefix(log[0], "error ")
		switch {
		case !ok:
			s.t.Fatalf("the source has ended after %q, want %q", got, log)
		case err != nil && isError:
			if !strings.Contains(err.Error(), text) {
				s.t.Fatalf("got %v, want an error with %q", err, text)
			}
			return
		case err != nil:
			s.t.Logf("passed over: %v", err)
		case change.Remove:
			got = append(got, "-"+change.Key)
			s.set = slices.DeleteFunc(s.set, func(c Change) bool { return c.Key == change.Key })
		case !slices.Contains(s.set, change):
			got = append(got, "+"+lines([]Change{change})[0])
			s.set = append(slices.DeleteFunc(s.set, func(c Change) bool { return c.Key == change.Key }), change)
		case isError: // said again, because the error is to come
		}
	}
	if !slices.Equal(got, log) {
		s.t.Fatalf("got %q, want %q", got, log)
	}
}

// wantNoMore waits for another look, and fails if it has brought a change.
func (s *script) wantNoMore() {
	s.t.Helper()
	if change, err, ok := s.next(); !ok || err == nil && (change.Remove || !slices.Contains(s.set, change)) {
		s.t.Errorf("got %v and %v, want no more", change, err)
	}
}

func TestDNS(t *testing.T) {
	const host = "backend.test."
	start := func(t *testing.T, cfg Config) *script {
		t.Helper()
		source, err := DNS(t.Context(), host+":8080", cfg)
		return reading(t, source, err)
	}
	t.Run("addresses come and go", func(t *testing.T) {
		s := newNameServer(t)
		s.set(host, zone{addrs: []string{"10.0.0.2", "10.0.0.1"}})
		r := start(t, quick(s))
		r.want("+http://10.0.0.1:8080", "+http://10.0.0.2:8080")
		s.set(host, zone{addrs: []string{"10.0.0.3", "10.0.0.2"}})
		r.want("+http://10.0.0.3:8080", "-http://10.0.0.1:8080")
	})
	t.Run("without a scheme they are host and port", func(t *testing.T) {
		s := newNameServer(t)
		s.set(host, zone{addrs: []string{"10.0.0.1"}})
		cfg := quick(s)
		cfg.Scheme = ""
		start(t, cfg).want("+10.0.0.1:8080")
	})
	t.Run("the name is one whatever its case", func(t *testing.T) {
		s := newNameServer(t)
		s.set(host, zone{addrs: []string{"10.0.0.1"}})
		source, err := DNS(t.Context(), strings.ToUpper(host)+":8080", quick(s))
		reading(t, source, err).want("+http://10.0.0.1:8080")
	})
	for _, c := range []struct {
		network string
		addrs   []string
		want    []string
	}{
		{"", []string{"fd00::1", "10.0.0.1"}, []string{"+http://10.0.0.1:8080"}},
		{"", []string{"fd00::1"}, []string{"+http://[fd00::1]:8080"}},
		{"ip4", []string{"fd00::1", "10.0.0.1"}, []string{"+http://10.0.0.1:8080"}},
		{"ip6", []string{"fd00::1", "10.0.0.1"}, []string{"+http://[fd00::1]:8080"}},
		{"ip", []string{"fd00::1", "10.0.0.1"}, []string{"+http://10.0.0.1:8080", "+http://[fd00::1]:8080"}},
		{"ip4", []string{"fd00::1"}, []string{"error no endpoints"}},
		{"ip6", []string{"10.0.0.1"}, []string{"error no endpoints"}},
	} {
		t.Run("network "+c.network+" of "+strings.Join(c.addrs, " "), func(t *testing.T) {
			s := newNameServer(t)
			s.set(host, zone{addrs: c.addrs})
			cfg := quick(s)
			cfg.Network = c.network
			r := start(t, cfg)
			r.want(c.want...)
			r.wantNoMore()
		})
	}
	t.Run("a server that fails changes nothing", func(t *testing.T) {
		s := newNameServer(t)
		s.set(host, zone{addrs: []string{"10.0.0.1"}})
		r := start(t, quick(s))
		r.want("+http://10.0.0.1:8080")
		s.set(host, zone{fail: typeA})
		r.want("error discover: dns:///" + host + ":8080: lookup backend.test.")
		s.set(host, zone{addrs: []string{"10.0.0.1", "10.0.0.2"}})
		r.want("+http://10.0.0.2:8080")
	})
	t.Run("a family that fails does not seem to be gone", func(t *testing.T) {
		for _, fail := range []uint16{typeA, typeAAAA} {
			s := newNameServer(t)
			s.set(host, zone{addrs: []string{"10.0.0.1", "fd00::1"}})
			cfg := quick(s)
			cfg.Network, cfg.AllowEmpty = "ip", true
			r := start(t, cfg)
			r.want("+http://10.0.0.1:8080", "+http://[fd00::1]:8080")
			s.set(host, zone{addrs: []string{"10.0.0.1", "fd00::1"}, fail: fail})
			r.want("error server misbehaving")
			s.set(host, zone{addrs: []string{"10.0.0.1", "10.0.0.2", "fd00::1"}})
			r.want("+http://10.0.0.2:8080")
		}
	})
	t.Run("a name that is gone changes nothing", func(t *testing.T) {
		s := newNameServer(t)
		s.set(host, zone{addrs: []string{"10.0.0.1", "10.0.0.2"}})
		r := start(t, quick(s))
		r.want("+http://10.0.0.1:8080", "+http://10.0.0.2:8080")
		s.forget(host)
		r.want("error discover: dns:///" + host + ":8080: no endpoints: lookup backend.test.")
		s.set(host, zone{}) // there, without addresses
		r.want("error no endpoints")
		s.set(host, zone{addrs: []string{"10.0.0.1", "10.0.0.3"}})
		r.want("+http://10.0.0.3:8080", "-http://10.0.0.2:8080")
	})
	t.Run("unless the set may be empty", func(t *testing.T) {
		for name, gone := range map[string]func(*nameServer){
			"no name":      func(s *nameServer) { s.forget(host) },
			"no addresses": func(s *nameServer) { s.set(host, zone{}) },
		} {
			t.Run(name, func(t *testing.T) {
				s := newNameServer(t)
				s.set(host, zone{addrs: []string{"10.0.0.1", "10.0.0.2"}})
				cfg := quick(s)
				cfg.AllowEmpty = true
				r := start(t, cfg)
				r.want("+http://10.0.0.1:8080", "+http://10.0.0.2:8080")
				gone(s)
				r.want("-http://10.0.0.1:8080", "-http://10.0.0.2:8080")
			})
		}
	})
	t.Run("an answer too long for a packet comes by TCP", func(t *testing.T) {
		s := newNameServer(t)
		var addrs, want []string
		for last := range strings.FieldsSeq("1 2 3 4 5 6 7 8 9") {
			addrs = append(addrs, "10.0.0."+last)
			want = append(want, "+http://10.0.0."+last+":8080")
		}
		s.set(host, zone{addrs: addrs, truncated: true})
		start(t, quick(s)).want(want...)
		if s.queries("tcp") == 0 {
			t.Error("TCP was not used")
		}
	})
	t.Run("a server that is silent is given up", func(t *testing.T) {
		s := newNameServer(t)
		s.set(host, zone{silent: true})
		cfg := quick(s)
		cfg.Timeout = 10 * time.Millisecond
		begun := time.Now()
		start(t, cfg).want("error i/o timeout")
		source, err := SRV(t.Context(), host, cfg)
		reading(t, source, err).want("error i/o timeout")
		if took := time.Since(begun); took > 4*time.Second { // by itself the Resolver gives up after 5 s
			t.Errorf("it took %v", took)
		}
	})
	t.Run("its context ends a look-up", func(t *testing.T) {
		s := newNameServer(t)
		s.set(host, zone{silent: true})
		ctx, cancel := context.WithCancel(t.Context())
		source, err := DNS(ctx, host+":8080", quick(s))
		if err != nil {
			t.Fatal(err)
		}
		f := follow(t, source)
		for s.queries("udp") == 0 {
			runtime.Gosched()
		}
		cancel()
		<-f.ended
		f.want()
	})
	t.Run("an IP address needs no server", func(t *testing.T) {
		s := newNameServer(t)
		for hostport, want := range map[string]string{
			"10.0.0.1:80":            "+http://10.0.0.1:80",
			"[FD00:0::1]:80":         "+http://[fd00::1]:80",
			"[::ffff:10.0.0.1]:0080": "+http://10.0.0.1:80",
		} {
			source, err := DNS(t.Context(), hostport, quick(s))
			reading(t, source, err).want(want)
		}
		if n := s.queries("udp"); n != 0 {
			t.Errorf("%d queries", n)
		}
	})
	t.Run("what is refused", func(t *testing.T) {
		for hostport, want := range map[string]string{
			"backend":       "discover: dns:///backend: must be host:port: missing port in address",
			":80":           "host must not be empty",
			"backend:":      `port must be 1 to 65535, got ""`,
			"backend:0":     "port must be 1 to 65535",
			"backend:65536": "port must be 1 to 65535",
			"backend:http":  "port must be 1 to 65535",
			"back/end:80":   "host must not contain '/'",
			"a:b:80":        "too many colons",
		} {
			if _, err := DNS(t.Context(), hostport, Config{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: got %v, want an error with %q", hostport, err, want)
			}
		}
		if _, err := DNS(t.Context(), "a:1", Config{Jitter: 2}); err == nil {
			t.Error("a Config that is not valid was accepted")
		}
	})
}

func TestSRV(t *testing.T) {
	const name = "_http._tcp.backend.test."
	start := func(t *testing.T, cfg Config) *script {
		t.Helper()
		source, err := SRV(t.Context(), name, cfg)
		return reading(t, source, err)
	}
	t.Run("hosts and ports come and go", func(t *testing.T) {
		s := newNameServer(t)
		s.set(name, zone{services: []net.SRV{
			{Target: "b.test.", Port: 8002, Priority: 10, Weight: 1},
			{Target: "A.test.", Port: 8001, Priority: 10, Weight: 100},
			{Target: "a.test.", Port: 8001, Priority: 10, Weight: 0},
		}})
		r := start(t, quick(s))
		r.want("+http://a.test:8001 weight=100", "+http://b.test:8002 weight=1")
		s.set(name, zone{services: []net.SRV{
			{Target: "a.test.", Port: 8003, Priority: 10, Weight: 5},
			{Target: "b.test.", Port: 8002, Priority: 10, Weight: 1},
		}})
		r.want("+http://a.test:8003 weight=5", "-http://a.test:8001")
	})
	t.Run("spare servers are of a higher priority number", func(t *testing.T) {
		s := newNameServer(t)
		spare := net.SRV{Target: "spare.test.", Port: 80, Priority: 20}
		s.set(name, zone{services: []net.SRV{spare, {Target: "a.test.", Port: 80, Priority: 10}}})
		r := start(t, quick(s))
		r.want("+http://a.test:80", "+http://spare.test:80 priority=1")
		r.wantNoMore()
		s.set(name, zone{services: []net.SRV{spare}})
		r.want("+http://spare.test:80", "-http://a.test:80")
	})
	t.Run("no server, in each of the ways to say so", func(t *testing.T) {
		for way, z := range map[string]zone{
			"no records":          {},
			"the root for a host": {services: []net.SRV{{Target: "."}}},
		} {
			t.Run(way, func(t *testing.T) {
				s := newNameServer(t)
				some := zone{services: []net.SRV{{Target: "a.test.", Port: 80}, {Target: "b.test.", Port: 80}}}
				s.set(name, some)
				cfg := quick(s)
				r := start(t, cfg)
				r.want("+http://a.test:80", "+http://b.test:80")
				s.set(name, z)
				r.want("error discover: srv:///" + name + ": no endpoints")
				s.set(name, some)
				cfg.AllowEmpty = true
				r = start(t, cfg)
				r.want("+http://a.test:80", "+http://b.test:80")
				s.set(name, z)
				r.want("-http://a.test:80", "-http://b.test:80")
			})
		}
	})
	t.Run("a mistake in the records changes nothing", func(t *testing.T) {
		s := newNameServer(t)
		s.set(name, zone{services: []net.SRV{{Target: "a.test.", Port: 80}}})
		r := start(t, quick(s))
		r.want("+http://a.test:80")
		s.set(name, zone{services: []net.SRV{{Target: "b.test.", Port: 0}}})
		r.want("error the record of b.test has port 0")
		s.set(name, zone{services: []net.SRV{{Target: "b/c.test.", Port: 80}, {Target: "b.test.", Port: 80}}})
		r.want("error invalid")
		s.set(name, zone{fail: typeSRV})
		r.want("error server misbehaving")
		s.set(name, zone{services: []net.SRV{{Target: "c.test.", Port: 80}}})
		r.want("+http://c.test:80", "-http://a.test:80")
	})
	t.Run("what is refused", func(t *testing.T) {
		for name, want := range map[string]string{
			"":          "discover: srv:///: must be the name of SRV records",
			"a.test:80": "host must not contain ':'",
			"a/b":       "host must not contain '/'",
		} {
			if _, err := SRV(t.Context(), name, Config{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: got %v, want an error with %q", name, err, want)
			}
		}
		if _, err := SRV(t.Context(), "a", Config{Timeout: -1}); err == nil {
			t.Error("a Config that is not valid was accepted")
		}
	})
}

func TestErrorsOfDNSKeepTheirCause(t *testing.T) {
	s := newNameServer(t)
	source, err := DNS(t.Context(), "nobody.test.:80", quick(s))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range source {
		dns, ok := errors.AsType[*net.DNSError](err)
		if !errors.Is(err, ErrEmpty) || !ok || !dns.IsNotFound {
			t.Errorf("got %v", err)
		}
		return
	}
}
