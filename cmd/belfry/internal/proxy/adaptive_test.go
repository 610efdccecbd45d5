package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// gets asks p for / once.
func gets(t *testing.T, p *running) {
	t.Helper()
	res, err := http.Get(p.url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("answered %s, %v", res.Status, err)
	}
}

func TestAnEndpointLimitThatFindsItselfComesAndGoesByReload(t *testing.T) {
	p := startReloadable(t, func(c *Config) { c.AdaptiveEndpoints, c.EndpointLimit = true, 8 }, named(t, "a", new(atomic.Int64)))
	gets(t, p.running)
	// It begins with 4, whatever it may become.
	if s := p.server.State(); s.Endpoints[0].Limit.Limit > 8 || s.Endpoints[0].Limit.Admitted != 1 || !strings.HasSuffix(s.Stack, "adaptive limit(1 to 8 each)") {
		t.Errorf("%s has %+v", s.Stack, s.Endpoints[0].Limit)
	}
	limitIs := func(want int) func() bool {
		return func() bool {
			for _, ep := range p.server.State().Endpoints {
				if ep.State.String() != "draining" && ep.Limit.Limit == want {
					return true
				}
			}
			return false
		}
	}
	p.reload(t, nil, func(c *Config) { c.AdaptiveEndpoints = false })
	eventually(t, "the limit of 8", limitIs(8))
	p.reload(t, nil, func(c *Config) { c.AdaptiveEndpoints = true })
	eventually(t, "the limit of 4", limitIs(4))
	gets(t, p.running)
}

func TestASubsetOfTheServersIsUsed(t *testing.T) {
	var targets []string
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		targets = append(targets, named(t, name, new(atomic.Int64)))
	}
	use := func(s Subset) string {
		p := start(t, func(c *Config) { c.Subset = s }, targets...)
		gets(t, p)
		eventually(t, "two servers", func() bool { return len(p.server.State().Endpoints) == 2 })
		if text := p.server.State().Stack; !strings.Contains(text, "balance(expected, subset of 2)") {
			t.Errorf("the stack is %s", text)
		}
		return p.keys()
	}
	first, second := use(Subset{Size: 2, Index: 0, Count: 2}), use(Subset{Size: 2, Index: 1, Count: 2})
	for key := range strings.FieldsSeq(first) {
		if strings.Contains(second, key) {
			t.Errorf("%s is used by both of two proxies: %s and %s", key, first, second)
		}
	}
	if again := use(Subset{Size: 2, Identity: "x"}); again != use(Subset{Size: 2, Identity: "x"}) {
		t.Error("one identity gives two subsets")
	}
}
