package discover

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestParse(t *testing.T) {
	t.Run("plain targets are a list", func(t *testing.T) {
		source, err := Parse(t.Context(), []string{"http://B", "https://a/api/", "c:8080", "http://b:80/"}, Config{Scheme: "http"})
		if err != nil {
			t.Fatal(err)
		}
		f := follow(t, source)
		<-f.ended
		f.want("+http://b:80", "+https://a:443/api", "+http://c:8080")
	})
	bubble(t, "what is said of a target counts more than what its source says", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "some targets")
		write(t, path, "a:1 weight=2 zone=b\nb:1 weight=9 priority=4")
		source, err := Parse(t.Context(), []string{"file://" + path + " zone=c  priority=0"}, Config{})
		if err != nil {
			t.Fatal(err)
		}
		f := follow(t, source)
		synctest.Wait()
		f.want("+a:1 weight=2 zone=c", "+b:1 weight=9 zone=c")
	})
	bubble(t, "a file, with targets beside it", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "some targets")
		write(t, path, "http://a:1\nb:1\nc:1")
		source, err := Parse(t.Context(), []string{
			"http://a:1",
			"FILE://" + strings.ReplaceAll(path, " ", "%20") + "?scheme=https",
		}, Config{Scheme: "http"})
		if err != nil {
			t.Fatal(err)
		}
		f := follow(t, source)
		synctest.Wait()
		for _, addr := range []string{"http://a:1", "https://b:1", "https://c:1"} {
			if f.set[addr] != addr {
				t.Errorf("%s is missing in %v", addr, f.set)
			}
		}
		f.log = nil
		write(t, path, "b:1")
		after(defaultFileInterval)
		f.want("-https://c:1") // a has been named twice
	})
	t.Run("names", func(t *testing.T) {
		s := newNameServer(t)
		s.set("a.test.", zone{addrs: []string{"10.0.0.1"}})
		cfg := quick(s)
		cfg.Interval = time.Hour
		for target, want := range map[string]string{
			"dns:///a.test.:80":               "+http://10.0.0.1:80",
			"dns:///a.test.:443?scheme=https": "+https://10.0.0.1:443",
			"dns:///[fd00::1]:80":             "+http://[fd00::1]:80",
			"srv:///a.test.":                  "error discover: srv:///a.test.: no endpoints",
		} {
			source, err := Parse(t.Context(), []string{target}, cfg)
			reading(t, source, err).want(want)
		}
	})
	t.Run("what is refused", func(t *testing.T) {
		for target, want := range map[string]string{
			"":                              `discover: "": address must not be empty; accepted are http://host[:port], `,
			"a":                             `discover: "a": must be host:port: missing port in address; accepted`,
			"http://":                       `discover: "http://": host must not be empty; accepted`,
			"http://a weight=0":             `discover: "http://a weight=0": weight must be 1 to 1000000, got "0"; accepted`,
			"dns:///a:80 zone=":             `discover: "dns:///a:80 zone=": zone must not be empty; accepted`,
			"http://a?b":                    `discover: "http://a?b": a query or a fragment does not belong in an address; accepted`,
			"consul://a":                    `discover: "consul://a": scheme "consul" is not known; accepted`,
			"dns://a:80":                    `discover: "dns://a:80": dns:// must be followed by a slash and what to look for; accepted`,
			"dns:///":                       `discover: "dns:///": dns:// must be followed`,
			"dns:///a":                      `discover: dns:///a: must be host:port: missing port in address; accepted`,
			"dns:///a:80?scheme=":           "",
			"dns:///a:80?ttl=1":             `discover: "dns:///a:80?ttl=1": the one option is scheme, once, got ttl=1; accepted`,
			"dns:///a:80?scheme=a&scheme=b": `the one option is scheme, once`,
			"dns:///a:80?scheme=%20":        `discover: scheme must be letters`,
			"dns:///a:80?%":                 `invalid URL escape`,
			"dns:///a:80#b":                 `a fragment means nothing here`,
			"dns:///%zz":                    `invalid URL escape`,
			"srv:///a:80":                   `discover: srv:///a:80: must be the name of SRV records, such as _http._tcp.example.com: host must not contain ':'; accepted`,
			"file://a/b":                    `discover: "file://a/b": file:// must be followed by a slash and what to look for; accepted`,
			"file://":                       `file:// must be followed`,
		} {
			_, err := Parse(t.Context(), []string{"http://fine", target}, Config{})
			if want == "" && err == nil {
				continue
			}
			if want == "" || err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "discover: ") {
				t.Errorf("%q: got %v, want an error with %q", target, err, want)
			}
		}
		if _, err := Parse(t.Context(), nil, Config{}); err == nil || !strings.Contains(err.Error(), Accepted) {
			t.Errorf("no target: got %v", err)
		}
		if _, err := Parse(t.Context(), []string{"a:1"}, Config{Interval: -1}); err == nil {
			t.Error("a Config that is not valid was accepted")
		}
	})
}
