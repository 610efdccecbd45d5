package proxy

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/belfryhttp"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/health"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/outlier"
)

type service = belfry.Service[*http.Request, *http.Response]

// A recipe is what endpoints are made with. Two that are equal make the same.
type recipe struct {
	tls       TargetTLS
	ca        [sha256.Size]byte // of the file's content
	health    Health
	breaker   Breaker
	probePath string // empty: servers are not asked how busy they are
	// adaptive is whether the limit finds itself.
	adaptive bool
	outlier  Outlier
	warm     int
	rotate   time.Duration

	roots *x509.CertPool // nil: the system's
}

// readRecipe reads what cfg names.
func readRecipe(cfg Config) (*recipe, error) {
	r := &recipe{tls: cfg.TargetTLS, health: cfg.Health, breaker: cfg.Breaker, outlier: cfg.Outlier, adaptive: cfg.AdaptiveEndpoints, warm: cfg.Warm, rotate: cfg.RotateEvery}
	if cfg.Health.Path == "" {
		r.health = Health{}
	}
	if cfg.Load == LoadProbing {
		r.probePath = cfg.ProbePath
	}
	if !cfg.Breaker.on() {
		r.breaker = Breaker{}
	}
	if !cfg.Outlier.on() {
		r.outlier = Outlier{}
	}
	if cfg.TargetTLS.CA == "" {
		return r, nil
	}
	pem, err := os.ReadFile(cfg.TargetTLS.CA)
	if err != nil {
		return nil, &Problem{Key: "target_tls.ca", Index: -1, Text: "must be " + AcceptedFile + ": " + err.Error()}
	}
	r.ca, r.roots = sha256.Sum256(pem), x509.NewCertPool()
	if !r.roots.AppendCertsFromPEM(pem) {
		return nil, &Problem{Key: "target_tls.ca", Index: -1, Text: "must be " + AcceptedFile + ", and there is no certificate in " + cfg.TargetTLS.CA}
	}
	return r, nil
}

func (r *recipe) equal(other *recipe) bool {
	return r.tls == other.tls && r.ca == other.ca && r.health == other.health && r.breaker == other.breaker && r.outlier == other.outlier && r.adaptive == other.adaptive &&
		r.warm == other.warm
}

// transport returns what a proxy needs from a transport, which differs from a client: nothing is decompressed on the way, and no other
// proxy is asked.
func (r *recipe) transport(scheme string, idle int) *http.Transport {
	t := belfryhttp.NewTransport(idle)
	t.Proxy = nil
	t.DisableCompression = true
	t.MaxResponseHeaderBytes = maxResponseHeader
	// The next attempt goes to another server, so waiting long for this one is no use.
	t.DialContext = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	t.TLSHandshakeTimeout = dialTimeout
	t.TLSClientConfig = &tls.Config{RootCAs: r.roots, ServerName: r.tls.ServerName, MinVersion: tls.VersionTLS12}
	if scheme == schemeH2C {
		t.Protocols = new(http.Protocols)
		t.Protocols.SetUnencryptedHTTP2(true)
	}
	return t
}

const (
	dialTimeout       = 5 * time.Second
	maxResponseHeader = 1 << 20
)

// endpoints makes the services of servers, and keeps what belongs to each while it is there.
type endpoints struct {
	meaning belfry.Semantics[*http.Request, *http.Response]
	events  *events

	mu     sync.Mutex
	recipe *recipe
	peers  *outlier.Detector // nil: nobody compares them
	limit  int
	known  map[string]*member
}

// A member is what endpoints of one key share: a server that moves to a new version has one limit all the time.
type member struct {
	limiter *limit.Limiter
	found   *limit.AdaptiveLimiter                          // of the newest, nil if it has the other
	health  *health.Service[*http.Request, *http.Response]  // of the newest
	changes atomic.Uint64                                   // of health
	breaker *breaker.Service[*http.Request, *http.Response] // of the newest
	outlier *outlier.Service[*http.Request, *http.Response] // of the newest
	count   int
}

func newEndpoints(r *recipe, places int, told *events) *endpoints {
	return &endpoints{meaning: belfryhttp.Semantics(), events: told, recipe: r, peers: r.outlier.detector(), limit: places, known: map[string]*member{}}
}

// set changes what endpoints are made with from now on, and the limit of those that are there.
func (e *endpoints) set(r *recipe, places int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.outlier != e.recipe.outlier {
		e.peers = r.outlier.detector()
	}
	e.recipe = r
	if e.limit == places {
		return
	}
	e.limit = places
	for _, m := range e.known {
		_ = m.limiter.Resize(places) // which fails below 0
	}
}

// dial makes the endpoint at addr.
func (e *endpoints) dial(ctx context.Context, key, addr string) (service, error) {
	scheme, base, err := splitAddr(addr)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	r, places := e.recipe, e.limit
	e.mu.Unlock()
	return belfryhttp.Dial(ctx, base, belfryhttp.Config{
		PreserveHost: true,
		ProbePath:    r.probePath,
		Transport:    r.transport(scheme, places),
		IdleConns:    places,
		Warm:         min(r.warm, places), // a reload may come between the two
		RotateEvery:  r.rotate,
		PerEndpoint:  func(leaf service) service { return e.join(key, base, leaf, r, eject.From(ctx)) },
	})
}

// join puts the layers of one endpoint around its leaf.
func (e *endpoints) join(key, base string, leaf service, r *recipe, guard *eject.Endpoint) service {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := e.known[key]
	if m == nil {
		m = &member{limiter: limit.NewLimiter(e.limit, limit.Config{OnReject: e.events.refusal(byEndpoint)})}
		e.known[key] = m
	}
	m.count++
	inner := e.limited(m, leaf, r)
	out := &endpoint{service: inner, key: key, of: e}
	if m.breaker = nil; r.breaker.on() {
		m.breaker = breaker.New(inner, r.breaker.config(guard, func(c breaker.Change) { e.events.breaker(key, c) }), e.meaning)
		out.service = m.breaker
	}
	if m.outlier = nil; r.outlier.on() && e.peers != nil {
		m.outlier = outlier.New(out.service, e.peers, guard, e.meaning)
		out.service, out.outlier = m.outlier, m.outlier
	}
	if r.health.Path != "" {
		probe := func(ctx context.Context) error { return ask(ctx, inner, base, r.health.Path, e.meaning) }
		out.health = health.New(out.service, probe, r.health.config(guard, func(s health.Stats) {
			m.changes.Add(1)
			e.events.health(key, s)
		}))
		out.service, m.health = out.health, out.health
	}
	return out
}

// limited puts the limit that r says around leaf. mu is held.
func (e *endpoints) limited(m *member, leaf service, r *recipe) service {
	if !r.adaptive {
		m.found = nil
		return limit.NewConcurrency(leaf, m.limiter, e.meaning)
	}
	if m.found == nil {
		m.found = limit.NewAdaptiveLimiter(limit.AdaptiveConfig{Max: e.limit, OnReject: e.events.refusal(byEndpoint)})
	}
	return limit.NewAdaptive(leaf, m.found, e.meaning)
}

func (e *endpoints) leave(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if m := e.known[key]; m != nil {
		if m.count--; m.count == 0 {
			delete(e.known, key)
		}
	}
}

// describe adds what is known about an endpoint.
func (e *endpoints) describe(s *EndpointState) {
	e.mu.Lock()
	m := e.known[s.Key]
	var probed *health.Service[*http.Request, *http.Response]
	var found *limit.AdaptiveLimiter
	var broken *breaker.Service[*http.Request, *http.Response]
	var compared *outlier.Service[*http.Request, *http.Response]
	if m != nil {
		probed, broken, found, compared = m.health, m.breaker, m.found, m.outlier
	}
	e.mu.Unlock()
	if m == nil {
		return
	}
	if s.Limit = m.limiter.Stats(); found != nil {
		s.Limit = found.Stats().Stats
	}
	if broken != nil {
		b := broken.Stats()
		s.Breaker = &b
	}
	if compared != nil {
		o := compared.Stats()
		s.Outlier = &o
	}
	if probed != nil {
		h := probed.Stats()
		s.Health = &HealthState{h.Healthy, h.Since, h.LastError, h.Probes, h.Failures, h.Refused, m.changes.Load()}
	}
}

// An endpoint is the outermost service of one server. It notes in a request's context who was asked.
type endpoint struct {
	service
	key     string
	of      *endpoints
	health  *health.Service[*http.Request, *http.Response]
	outlier *outlier.Service[*http.Request, *http.Response]
}

// Call notes who is asked, and who has answered: where two are asked, that is the one whose attempt was not cancelled.
func (e *endpoint) Call(ctx context.Context, permit belfry.Permit, req *http.Request) (*http.Response, error) {
	x, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		return e.service.Call(ctx, permit, req)
	}
	x.asks(e.key)
	res, err := e.service.Call(ctx, permit, req)
	if err == nil && ctx.Err() == nil {
		x.answers(e.key)
	}
	return res, err
}

// Close ends the probes.
func (e *endpoint) Close() error {
	e.of.leave(e.key)
	if e.health != nil {
		return e.health.Close()
	}
	if e.outlier != nil {
		return e.outlier.Close()
	}
	return nil
}

func (b Breaker) on() bool { return b.Consecutive > 0 || b.Ratio > 0 }

// String says what opens it.
func (b Breaker) String() string {
	var words []string
	if b.Consecutive > 0 {
		words = append(words, fmt.Sprintf("%d failures in a row", b.Consecutive))
	}
	if b.Ratio > 0 {
		words = append(words, fmt.Sprintf("%v of %v", b.Ratio, b.Window))
	}
	return strings.Join(words, " or ")
}

func (b Breaker) config(guard *eject.Endpoint, told func(breaker.Change)) breaker.Config {
	return breaker.Config{
		Consecutive: b.Consecutive, Ratio: b.Ratio, Window: b.Window, MinCalls: b.MinCalls, MinBackoff: b.MinPause, MaxBackoff: b.MaxPause,
		Guard: guard, OnChange: told,
	}
}

func (o Outlier) on() bool { return o.Gap > 0 || o.Latency > 0 }

// String says who is one.
func (o Outlier) String() string {
	var words []string
	if o.Gap > 0 {
		words = append(words, fmt.Sprintf("%v fewer good answers", o.Gap))
	}
	if o.Latency > 0 {
		words = append(words, fmt.Sprintf("%v times as slow", o.Latency))
	}
	return strings.Join(words, " or ")
}

// detector compares servers, nil if nobody is to.
func (o Outlier) detector() *outlier.Detector {
	if !o.on() {
		return nil
	}
	return outlier.NewDetector(outlier.Config{
		Gap: o.Gap, IgnoreFailures: o.Gap == 0, Latency: o.Latency, Interval: o.Interval, MinCalls: o.MinCalls,
		MinEjection: o.MinPause, MaxEjection: o.MaxPause,
	})
}

// config adds to c how many servers may be left alone. What means nothing in a file is the default in c, hence below 0.
func (e Eject) config(c balance.Config) balance.Config {
	c.Eject = eject.Config{MaxShare: e.MaxShare, Keep: e.Keep}
	if e.Keep == 0 {
		c.Eject.Keep = -1
	}
	if c.MaxRetryAfter = e.RetryAfter; e.RetryAfter == 0 {
		c.MaxRetryAfter = -1
	}
	return c
}

func (h Health) config(guard *eject.Endpoint, told func(health.Stats)) health.Config {
	return health.Config{Interval: h.Interval, Timeout: h.Timeout, Unhealthy: h.Unhealthy, Healthy: h.Healthy, OnChange: told, Guard: guard}
}

var errProbe = errors.New("answered")

// ask asks a server whether it is well: an answer of 200 to 399 says so.
func ask(ctx context.Context, server service, base, path string, meaning belfry.Semantics[*http.Request, *http.Response]) error {
	u, err := probeURL(path)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/"), http.NoBody)
	if err != nil {
		return err
	}
	req.URL.Path, req.URL.RawPath, req.URL.RawQuery = u.Path, u.RawPath, u.RawQuery
	req.Header.Set("User-Agent", "belfry")
	res, err := belfry.TryDo(ctx, server, req)
	if err != nil {
		return err
	}
	meaning.Discard(res)
	if res.StatusCode < 200 || res.StatusCode > 399 {
		return fmt.Errorf("%w %s", errProbe, res.Status)
	}
	return nil
}

var errPath = errors.New("must begin with one slash")

// probeURL reads what is asked for.
func probeURL(path string) (*url.URL, error) {
	u, err := url.ParseRequestURI(path)
	if err != nil {
		return nil, err
	}
	if u.Host != "" || u.Scheme != "" || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(path, "//") || strings.Contains(path, "#") {
		return nil, errPath
	}
	return u, nil
}
