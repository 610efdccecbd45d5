package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A reloadable is a proxy whose next configuration the test sets.
type reloadable struct {
	*running
	mu   sync.Mutex
	next Config
	err  error
}

func startReloadable(t *testing.T, change func(*Config), targets ...string) *reloadable {
	t.Helper()
	r := &reloadable{next: configure(change, targets...)}
	r.running = startWith(t, r.next, Options{File: "belfry.yaml", Reload: func() (Config, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.next, r.err
	}})
	return r
}

// reload changes the configuration, and waits until it runs or was refused.
func (r *reloadable) reload(t *testing.T, err error, change func(*Config)) ConfigState {
	t.Helper()
	r.mu.Lock()
	r.err = err
	if change != nil {
		change(&r.next)
	}
	r.mu.Unlock()
	before := r.server.State().Config
	r.signals <- syscall.SIGHUP
	var now ConfigState
	eventually(t, "the reload", func() bool {
		now = r.server.State().Config
		return now.Generation > before.Generation || now.Refused != nil && now.RefusedAt.After(before.RefusedAt)
	})
	return now
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// keys returns the servers that are there and not leaving.
func (r *running) keys() string {
	var keys []string
	for _, ep := range r.server.State().Endpoints {
		if ep.State.String() != "draining" {
			keys = append(keys, ep.Key)
		}
	}
	return strings.Join(keys, " ")
}

func named(t *testing.T, name string, counted *atomic.Int64) string {
	return server(t, func(w http.ResponseWriter, r *http.Request) {
		counted.Add(1)
		_, _ = io.WriteString(w, name)
	})
}

func TestAReloadExchangesServersWithoutLosingARequest(t *testing.T) {
	var a, b, c atomic.Int64
	stays, goes, comes := named(t, "a", &a), named(t, "b", &b), named(t, "c", &c)
	p := startReloadable(t, nil, stays, goes)
	stop, failed := make(chan struct{}), atomic.Int64{}
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if res, _ := p.fetch(t, http.MethodPost, "/", "x"); res.StatusCode != http.StatusOK {
					failed.Add(1)
				}
			}
		})
	}
	eventually(t, "traffic", func() bool { return a.Load() > 50 && b.Load() > 50 })
	for i := range 10 {
		targets := []string{stays, comes}
		if i%2 == 1 {
			targets = []string{stays, goes}
		}
		state := p.reload(t, nil, func(cfg *Config) {
			cfg.Targets, cfg.Limit, cfg.Timeout = targets, 100+i, time.Duration(10+i)*time.Second
		})
		if state.Generation != i+2 || state.Refused != nil {
			t.Fatalf("after reload %d: %+v", i+1, state)
		}
		want := stays + " " + targets[1]
		eventually(t, "the servers "+want, func() bool { return p.keys() == want })
	}
	gone := c.Load()
	eventually(t, "traffic", func() bool { return b.Load() > gone+50 })
	close(stop)
	clients.Wait()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d requests failed", n)
	}
	state := p.server.State()
	if total := uint64(a.Load() + b.Load() + c.Load()); state.Requests.Total != total || state.Retry.Calls != total || state.Limit.Limit != 109 {
		t.Errorf("%d arrived, the state says %+v, retry %+v, limit %+v", total, state.Requests, state.Retry, state.Limit)
	}
	// What stayed has kept what is known about it: it has had requests from the start.
	for _, ep := range state.Endpoints {
		if ep.Key == stays && ep.Successes != uint64(a.Load()) {
			t.Errorf("%s has %d successes, %d arrived", ep.Key, ep.Successes, a.Load())
		}
	}
}

func TestARequestInFlightAtARemovedServerFinishes(t *testing.T) {
	started, rest := make(chan struct{}), make(chan struct{})
	old := server(t, func(w http.ResponseWriter, r *http.Request) {
		close(started)
		<-rest
		_, _ = io.WriteString(w, "done")
	})
	free := sync.OnceFunc(func() { close(rest) })
	defer free()
	next := named(t, "next", new(atomic.Int64))
	p := startReloadable(t, nil, old)
	answer := make(chan string, 1)
	go func() {
		_, body := p.fetch(t, http.MethodPost, "/", "")
		answer <- body
	}()
	wait(t, "the request", started)
	p.reload(t, nil, func(cfg *Config) { cfg.Targets = []string{next} })
	eventually(t, "the end of the old server", func() bool { return p.keys() == next })
	if _, body := p.fetch(t, http.MethodGet, "/", ""); body != "next" {
		t.Errorf("answered %q", body)
	}
	free()
	if got := wait(t, "the answer", answer); got != "done" {
		t.Errorf("answered %q", got)
	}
}

// A request that waits in the line of the old layers is served when there is a place, and the places are the same ones.
func TestARequestThatWaitsOutlivesAReload(t *testing.T) {
	started, rest := make(chan struct{}, 10), make(chan struct{})
	target := server(t, func(w http.ResponseWriter, r *http.Request) {
		started <- struct{}{}
		<-rest
	})
	free := sync.OnceFunc(func() { close(rest) })
	defer free()
	p := startReloadable(t, func(c *Config) { c.Limit, c.BufferWait = 1, patience }, target)
	answers := make(chan int, 3)
	send := func() {
		res, _ := p.fetch(t, http.MethodGet, "/", "")
		answers <- res.StatusCode
	}
	go send()
	wait(t, "the first request", started)
	go send()
	eventually(t, "the second in line", func() bool { return p.server.State().Buffer.Queued == 1 })
	p.reload(t, nil, func(cfg *Config) { cfg.Buffer = 7 })
	go send()
	eventually(t, "the third in line", func() bool { s := p.server.State().Buffer; return s.Queued == 2 && s.Bound == 7 })
	if n := p.server.State().Limit; n.InFlight != 1 || n.Limit != 1 {
		t.Errorf("the limit has %+v", n)
	}
	free()
	for range 3 {
		if got := wait(t, "an answer", answers); got != http.StatusOK {
			t.Errorf("answered %d", got)
		}
	}
}

func TestALargerLimitIsThereAtOnce(t *testing.T) {
	started, rest := make(chan struct{}, 10), make(chan struct{})
	target := server(t, func(w http.ResponseWriter, r *http.Request) {
		started <- struct{}{}
		<-rest
	})
	defer close(rest)
	p := startReloadable(t, func(c *Config) { c.EndpointLimit, c.BufferWait = 1, patience }, target)
	for range 3 {
		go func() { _, _ = http.Get(p.url) }() //nolint:bodyclose // the test ends before
	}
	wait(t, "the first request", started)
	p.reload(t, nil, func(cfg *Config) { cfg.EndpointLimit = 3 })
	wait(t, "the second request", started)
	wait(t, "the third request", started)
}

func TestABadReloadChangesNothingAndSaysWhy(t *testing.T) {
	before := named(t, "a", new(atomic.Int64))
	p := startReloadable(t, nil, before)
	bad := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(bad, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := p.next
	for name, c := range map[string]struct {
		err    error
		change func(*Config)
		want   string
	}{
		"a file that cannot be read": {errors.New("belfry.yaml:3: limit must be"), nil, "belfry.yaml:3: limit must be"},
		"a value":                    {nil, func(c *Config) { c.Limit = 0 }, "--limit must be 1 to 1000000, got 0"},
		"no targets":                 {nil, func(c *Config) { c.Targets = nil }, "there is none"},
		"listen":                     {nil, func(c *Config) { c.Listen = "127.0.0.1:1" }, "listen cannot change while it runs; restart it for that: it is 127.0.0.1:0, the file says 127.0.0.1:1"},
		"admin":                      {nil, func(c *Config) { c.Admin = "" }, "admin cannot change while it runs"},
		"load":                       {nil, func(c *Config) { c.Load = LoadRandom }, "load cannot change while it runs"},
		"subset":                     {nil, func(c *Config) { c.Subset = Subset{Size: 1, Identity: "a"} }, "subset cannot change while it runs"},
		"client":                     {nil, func(c *Config) { c.Client.IdleTimeout = time.Hour }, "client.idle_timeout cannot change"},
		"tls":                        {nil, func(c *Config) { c.TLS = ListenTLS{"a", "b"} }, "tls (on or off) cannot change"},
		"a CA that is not there":     {nil, func(c *Config) { c.TargetTLS.CA = bad + "no" }, "target_tls.ca must be the path of a file in PEM: open"},
		"a CA that is none":          {nil, func(c *Config) { c.TargetTLS.CA = bad }, "there is no certificate in"},
	} {
		t.Run(name, func(t *testing.T) {
			state := p.reload(t, c.err, func(cfg *Config) {
				*cfg = good
				if c.change != nil {
					c.change(cfg)
				}
			})
			if state.Generation != 1 || state.Refused == nil || !strings.Contains(state.Refused.Error(), c.want) {
				t.Errorf("%+v, want %s", state, c.want)
			}
			if text := p.log.String(); !strings.Contains(text, "reload refused, the old configuration goes on") {
				t.Errorf("the log says\n%s", text)
			}
			if _, body := p.fetch(t, http.MethodGet, "/", ""); body != "a" || p.keys() != before {
				t.Errorf("answered %q by %s", body, p.keys())
			}
		})
	}
	if state := p.reload(t, nil, func(cfg *Config) { *cfg = good }); state.Generation != 2 || state.Refused != nil || state.File != "belfry.yaml" {
		t.Errorf("after a good one: %+v", state)
	}
}

// What is configured otherwise for all servers makes them anew, one by one, and their limit stays the same.
func TestAReloadOfHealthMovesServers(t *testing.T) {
	var probed, ill atomic.Int64
	started, rest := make(chan struct{}, 1), make(chan struct{})
	target := server(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz":
			probed.Add(1)
			w.WriteHeader(int(200 + 300*ill.Load()))
		case "/slow":
			started <- struct{}{}
			<-rest
		}
	})
	free := sync.OnceFunc(func() { close(rest) })
	defer free()
	p := startReloadable(t, func(c *Config) { c.EndpointLimit = 2 }, target)
	answers := make(chan int, 1)
	go func() {
		res, _ := p.fetch(t, http.MethodGet, "/slow", "")
		answers <- res.StatusCode
	}()
	wait(t, "the request", started)
	p.reload(t, nil, func(cfg *Config) {
		cfg.Health = Health{Path: "/healthz?deep=1", Interval: 100 * time.Millisecond, Timeout: time.Second, Unhealthy: 2, Healthy: 1}
	})
	health := func() *HealthState {
		for _, ep := range p.server.State().Endpoints {
			if ep.Health != nil && ep.Limit.InFlight >= 1 {
				return ep.Health
			}
		}
		return nil
	}
	// The move comes with the first request after it.
	eventually(t, "probes", func() bool {
		_, _ = p.fetch(t, http.MethodGet, "/", "")
		return probed.Load() > 0 && health() != nil && health().Healthy
	})
	ill.Store(1)
	eventually(t, "an unhealthy server", func() bool { return !health().Healthy && health().LastError != nil })
	ill.Store(0)
	eventually(t, "a healthy server", func() bool { return health().Healthy })
	free()
	if got := wait(t, "the answer", answers); got != http.StatusOK {
		t.Errorf("the request of before is answered %d", got)
	}
	// Without health checks again, the probes end.
	p.reload(t, nil, func(cfg *Config) { cfg.Health.Path = "" })
	eventually(t, "the end of the probes", func() bool {
		_, _ = p.fetch(t, http.MethodGet, "/", "")
		n := probed.Load()
		<-time.After(150 * time.Millisecond)
		return probed.Load() == n
	})
}

// A file may be on a disk that does not answer.
func TestAReloadThatTakesForeverHoldsUpNothing(t *testing.T) {
	reads, rest := make(chan struct{}, 8), make(chan struct{})
	defer close(rest)
	cfg := configure(nil, named(t, "a", new(atomic.Int64)))
	p := startWith(t, cfg, Options{Reload: func() (Config, error) {
		reads <- struct{}{}
		<-rest
		return cfg, nil
	}})
	p.signals <- syscall.SIGHUP
	wait(t, "the reading", reads)
	for range 3 {
		p.signals <- syscall.SIGHUP
	}
	if _, body := p.fetch(t, http.MethodGet, "/", ""); body != "a" {
		t.Errorf("answered %q", body)
	}
	rest <- struct{}{}
	wait(t, "another reading, of what the file says by now", reads)
	p.signals <- syscall.SIGTERM
	if code := wait(t, "the end", p.ended); code != ExitOK {
		t.Errorf("exit code %d", code)
	}
	if n := p.server.State().Config.Generation; n != 2 || len(reads) > 0 {
		t.Errorf("generation %d after one reload, and %d more readings", n, len(reads))
	}
}

// What is read when the end has come is not run any more.
func TestAReloadThatComesTooLateChangesNothing(t *testing.T) {
	reads, rest := make(chan struct{}, 1), make(chan struct{})
	free := sync.OnceFunc(func() { close(rest) })
	defer free()
	started, answer := make(chan struct{}), make(chan struct{})
	cfg := configure(func(c *Config) { c.Drain = patience }, server(t, func(http.ResponseWriter, *http.Request) {
		close(started)
		<-answer
	}))
	p := startWith(t, cfg, Options{Reload: func() (Config, error) {
		reads <- struct{}{}
		<-rest
		return cfg, nil
	}})
	go func() { _, _ = p.fetch(t, http.MethodGet, "/", "") }()
	wait(t, "the request", started)
	p.signals <- syscall.SIGHUP
	wait(t, "the reading", reads)
	p.signals <- syscall.SIGTERM
	eventually(t, "the drain", p.server.Draining)
	free()
	close(answer)
	wait(t, "the end", p.ended)
	if text := p.log.String(); p.server.State().Config.Generation != 1 || strings.Contains(text, "reload") {
		t.Errorf("generation %d, and the log says\n%s", p.server.State().Config.Generation, text)
	}
}

func TestHangUpWithoutAFileEndsLikeTerm(t *testing.T) {
	p := start(t, nil, nobody(t))
	p.signals <- syscall.SIGHUP
	if code := wait(t, "the end", p.ended); code != ExitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestHangUpWhileItDrainsIsNoSecondSignal(t *testing.T) {
	started, rest := make(chan struct{}), make(chan struct{})
	p := startReloadable(t, func(c *Config) { c.Drain = patience }, server(t, func(w http.ResponseWriter, r *http.Request) {
		close(started)
		<-rest
	}))
	go func() { _, _ = p.fetch(t, http.MethodGet, "/", "") }()
	wait(t, "the request", started)
	p.signals <- syscall.SIGTERM
	p.signals <- syscall.SIGHUP
	eventually(t, "the drain", func() bool { return p.server.Draining() })
	close(rest)
	if code := wait(t, "the end", p.ended); code != ExitOK {
		t.Errorf("exit code %d", code)
	}
}

// Whoever sends requests learns of the end first, and requests are taken for the delay.
func TestDrainingIsTrueBeforeConnectionsAreRefused(t *testing.T) {
	p := start(t, func(c *Config) { c.DrainDelay = 300 * time.Millisecond }, named(t, "a", new(atomic.Int64)))
	if p.server.Draining() {
		t.Error("draining from the start")
	}
	p.signals <- syscall.SIGTERM
	eventually(t, "draining", func() bool { return p.server.State().Draining })
	began := time.Now()
	if _, body := p.fetch(t, http.MethodGet, "/", ""); body != "a" {
		t.Errorf("answered %q", body)
	}
	wait(t, "the end", p.ended)
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("ended after %v", took)
	}
}
