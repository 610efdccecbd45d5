package proxy

import (
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/belfryhttp"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/load"
	"github.com/belfry-go/belfry/retry"
)

// An upstream is the stack over the servers. What endpoints are, what is known about them and how many requests are on the way lives
// as long as the upstream; the layers above are made anew by each configuration, and swapped: what is in the old ones
// goes on there.
type upstream struct {
	servers   *balance.Balancer[*http.Request, *http.Response]
	sources   *sources
	endpoints *endpoints
	limiter   *limit.Limiter
	rate      *limit.RateLimiter
	told      hooks
	sticky    Sticky

	now atomic.Pointer[layers]

	mu      sync.Mutex // guards what follows
	cfg     Config
	recipe  *recipe
	version int
	old     []*layers        // that have requests, or had when somebody last looked
	past    counts           // of those that have none
	budgets []*budget.Budget // all that there were, the current one last
}

// hooks are told what happens further in.
type hooks struct {
	*events

	event func(balance.Event)
	retry func(retry.Event)
	admit func(waited time.Duration)
}

func newUpstream(cfg Config, told hooks) (*upstream, error) {
	targets, err := ParseTargets(cfg.Targets)
	if err != nil {
		return nil, err
	}
	made, err := readRecipe(cfg)
	if err != nil {
		return nil, err
	}
	u := &upstream{
		sources:   newSources(order{targets, cfg.DiscoveryInterval, 1}),
		endpoints: newEndpoints(made, cfg.EndpointLimit, told.events),
		rate:      newRate(cfg.Rate.orAny(), told),
		limiter:   limit.NewLimiter(cfg.Limit, limit.Config{OnReject: told.refusal(byLimit)}),
		told:      told,
		sticky:    cfg.Sticky,
		cfg:       cfg, recipe: made, version: 1,
	}
	meaning := u.endpoints.meaning
	if cfg.CostBytes > 0 {
		meaning.Cost = belfryhttp.BodyCost(cfg.CostBytes)
	}
	choice := balance.Config{Load: metric(cfg.Load), Zone: cfg.Zone, ByKey: cfg.Sticky.on(), Decisions: cfg.Decisions, OnEvent: told.event}
	u.servers, err = balance.New(cfg.connections(cfg.Subset.of(u.sources.all())), u.endpoints.dial, cfg.Eject.config(choice), meaning)
	if err != nil {
		return nil, err
	}
	u.budgets = []*budget.Budget{budget.New(budgetConfig(cfg.RetryRatio))}
	l, err := u.newLayers(cfg, u.budgets[0])
	if err != nil {
		u.Close()
		return nil, err
	}
	u.now.Store(l)
	return u, nil
}

func newRate(r Rate, told hooks) *limit.RateLimiter {
	return limit.NewRateLimiter(r.PerSecond, time.Second, limit.RateConfig{Burst: r.Burst, OnReject: told.refusal(byRate)})
}

func metric(name string) load.Metric {
	switch name {
	case LoadReported:
		return load.Reported{}
	case LoadProbing:
		return load.Probing{}
	case LoadPeakEWMA:
		return load.PeakEWMA{}
	case LoadInFlight:
		return load.Pending{}
	case LoadRandom:
		return load.Constant(nil)
	}
	return load.Expected{}
}

// connections makes of each server of source as many as each address has.
func (c Config) connections(source iter.Seq2[discover.Change, error]) iter.Seq2[discover.Change, error] {
	if c.PerAddress == 1 && c.RotateEvery == 0 {
		return source
	}
	return discover.Connections{PerAddress: c.PerAddress, RotateEvery: c.RotateEvery}.Of(source)
}

// of leaves the servers of source that are used.
func (s Subset) of(source iter.Seq2[discover.Change, error]) iter.Seq2[discover.Change, error] {
	if s == (Subset{}) {
		return source
	}
	return discover.Subset{Size: s.Size, Identity: s.Identity, Index: s.Index, Count: s.Count}.Of(source)
}

// apply runs cfg from now on, or fails and changes nothing. What cannot be changed is the caller's to refuse.
func (u *upstream) apply(cfg Config) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	targets, err := ParseTargets(cfg.Targets)
	if err != nil {
		return err
	}
	made, err := readRecipe(cfg)
	if err != nil {
		return err
	}
	budgets := u.budgets
	if cfg.RetryRatio != u.cfg.RetryRatio {
		budgets = append(slices.Clip(budgets), budget.New(budgetConfig(cfg.RetryRatio)))
	}
	next, err := u.newLayers(cfg, budgets[len(budgets)-1])
	if err != nil {
		return err
	}
	if err := u.limiter.Resize(cfg.Limit); err != nil {
		return err
	}
	if r := cfg.Rate.orAny(); r != u.cfg.Rate.orAny() {
		if err := u.rate.Set(r.PerSecond, time.Second, r.Burst); err != nil {
			return err
		}
	}
	if !made.equal(u.recipe) {
		u.recipe = made
		u.version++
	}
	u.endpoints.set(u.recipe, cfg.EndpointLimit)
	u.sources.set(order{targets, cfg.DiscoveryInterval, u.version})
	u.cfg, u.budgets = cfg, budgets
	u.old = append(u.old, u.now.Swap(next))
	u.fold()
	return nil
}

// RoundTrip sends req through the layers that are current when it comes.
func (u *upstream) RoundTrip(req *http.Request) (*http.Response, error) {
	l := u.enter()
	defer l.active.Add(-1)
	if u.sticky.on() {
		if key, ok := u.sticky.key(req); ok {
			req = req.WithContext(balance.WithKey(req.Context(), key))
		}
	}
	res, err := l.tripper.RoundTrip(req)
	if err != nil {
		return nil, u.explain(err)
	}
	return res, nil
}

// explain returns the error of a request that waited for its place in vain, because there is no endpoint at all, in words that say so.
// The waiting room only knows for how long. Of those that find it full there may be many, and to look costs time: they are told so.
func (u *upstream) explain(err error) error {
	r, ok := errors.AsType[*belfry.Rejection](err)
	if !ok || r.Layer != "buffer" || r.Reason != "queued too long" || len(u.servers.Stats().Endpoints) > 0 {
		return err
	}
	return &belfry.Rejection{Layer: "balance", Reason: "no endpoint discovered", RetryAfter: r.RetryAfter, Err: err}
}

// enter returns the current layers, which count the caller: whoever finds that old ones are not active can rely on it.
func (u *upstream) enter() *layers {
	for {
		l := u.now.Load()
		l.active.Add(1)
		if u.now.Load() == l {
			return l
		}
		l.active.Add(-1)
	}
}

// fold adds up what layers without requests have counted, and forgets them. mu is held.
func (u *upstream) fold() {
	var busy []*layers
	for _, l := range u.old {
		if l.active.Load() > 0 {
			busy = append(busy, l)
			continue
		}
		u.past.add(l.counts())
	}
	u.old = busy
}

// Close closes idle connections, and the others when their calls are over.
func (u *upstream) Close() error {
	u.sources.end()
	return u.servers.Close()
}

// String lists the layers in the order in which a request meets them.
func (u *upstream) String() string {
	u.mu.Lock()
	cfg := u.cfg
	u.mu.Unlock()
	text := fmt.Sprintf("%s → balance(%s", u.now.Load().text, loadNames[cfg.Load])
	if s := cfg.Subset; s.Size > 0 {
		text += fmt.Sprintf(", subset of %d", s.Size)
	}
	text += ") → "
	if cfg.Health.Path != "" {
		text += fmt.Sprintf("health(%s every %v) → ", cfg.Health.Path, cfg.Health.Interval)
	}
	if b := cfg.Breaker; b.on() {
		text += "breaker(" + b.String() + ") → "
	}
	if o := cfg.Outlier; o.on() {
		text += "outlier(" + o.String() + ") → "
	}
	if cfg.AdaptiveEndpoints {
		return text + fmt.Sprintf("adaptive limit(1 to %d each)", cfg.EndpointLimit)
	}
	return text + fmt.Sprintf("concurrency limit(%d each)", cfg.EndpointLimit)
}

// state adds what there is to see.
func (u *upstream) state(s *State) {
	s.Stack = u.String()
	found := u.servers.Stats()
	s.Waiting, s.Discovery = found.Waiting, found.Discovery
	s.Guard, s.Panics, s.Probes = found.Guard, found.Panics, found.Probes
	for _, ep := range found.Endpoints {
		_, ep.Addr, _ = splitAddr(ep.Addr)
		e := EndpointState{EndpointStats: ep}
		u.endpoints.describe(&e)
		s.Endpoints = append(s.Endpoints, e)
	}
	s.Targets = u.sources.targets()
	s.Limit = u.limiter.Stats()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.fold()
	sum := u.past
	for _, l := range u.old {
		sum.add(l.counts())
	}
	s.Zone = u.cfg.Zone
	now := u.now.Load()
	sum.add(now.counts())
	for _, b := range u.budgets {
		sum.spend(b.Stats())
	}
	bound := now.buffer.Stats().Bound
	s.Buffer, s.Timeout, s.Retry, s.Hedge, s.Budget, s.Shed = sum.buffer, sum.timeout, sum.retry, sum.hedge, sum.budget, sum.shed
	s.Buffer.Bound = bound
}

// budgetConfig turns a ratio into a budget: 0 means no extra attempts at all, not the default.
func budgetConfig(ratio float64) budget.Config {
	if ratio == 0 {
		return budget.Config{NoRatio: true, NoReserve: true}
	}
	return budget.Config{Ratio: ratio}
}
