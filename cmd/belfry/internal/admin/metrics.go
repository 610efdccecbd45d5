package admin

import (
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/cmd/belfry/internal/proxy"
	"github.com/belfry-go/belfry/eject"
)

// registry returns all metrics: the proxy's, read from its state when they are asked for, and those of the process.
func (a *Admin) registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		a.requests.duration,
		a.requests.waits,
		collector{a},
	)
	return r
}

// A metric is one of a State's numbers.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func counter(name, help string, labels ...string) metric {
	return metric{prometheus.NewDesc("belfry_"+name, help, labels, nil), prometheus.CounterValue}
}

func gauge(name, help string, labels ...string) metric {
	return metric{prometheus.NewDesc("belfry_"+name, help, labels, nil), prometheus.GaugeValue}
}

var (
	buildInfo  = gauge("build_info", "Always 1; the labels say which build this is.", "version", "goversion")
	draining   = gauge("draining", "1 from the signal to end on.")
	generation = gauge("config_generation", "1, and one more after each reload.")
	configTime = gauge("config_last_success_timestamp_seconds", "When the configuration was last taken.")
	configBad  = gauge("config_refused", "1 if the latest reload was refused.")

	requestsTotal    = counter("requests_total", "Requests that came in.", "route")
	requestsInFlight = gauge("requests_in_flight", "Requests that are not over.", "route")
	rejectionsTotal  = counter("rejections_total", "Requests turned away for want of room.", "route", "reason")
	ownAnswersTotal  = counter("own_answers_total", "Requests that the proxy answered itself, or whose client had left.", "route", "reason")

	limitPlaces   = gauge("limit_places", "Requests that may be worked on at a time.", "route")
	limitInFlight = gauge("limit_in_flight", "Requests that are worked on.", "route")
	bufferSeats   = gauge("buffer_seats", "Requests that may wait for a place.", "route")
	bufferSeated  = gauge("buffer_seated", "Seats taken, by those who wait too.", "route")
	bufferQueued  = gauge("buffer_queued", "Requests that wait for a place.", "route")
	bufferExpired = counter("buffer_expired_total", "Requests that waited for too long.", "route")
	refusedTotal  = counter("layer_refusals_total", "Requests that each layer turned away, or failed by its deadline. One may be among several.", "route", "layer")
	timeoutsTotal = counter("timeouts_total", "Requests that had no answer in time.", "route")

	retriesTotal   = counter("retries_total", "Attempts that were not the first.", "route")
	retriesRefused = counter("retries_refused_total", "Requests that were not tried again although they failed.", "route", "reason")
	budgetBalance  = gauge("retry_budget_balance", "Retries that could be paid for now.", "route")

	hedgesTotal   = counter("hedges_total", "Extra attempts for requests that took long.", "route")
	hedgesWon     = counter("hedges_won_total", "Extra attempts that were the first to succeed.", "route")
	hedgesRefused = counter("hedges_refused_total", "Extra attempts that were due, and not sent.", "route", "reason")

	waiting         = gauge("endpoint_waiters", "Requests that wait because no endpoint is ready.", "route")
	discoveryFailed = gauge("discovery_failing", "1 if endpoints were last looked for in vain.", "route")

	ejectionsTotal   = counter("ejections_total", "Endpoints that were left alone, by the reason.", "route", "reason")
	ejectionsRefused = counter("ejections_refused_total", "Endpoints that would have been left alone if not too many had been, by the reason.", "route", "reason")
	endpointsEjected = gauge("endpoints_ejected", "Endpoints that are left alone.", "route")
	endpointsMay     = gauge("endpoints_ejectable", "Endpoints that may be left alone at a time.", "route")
	panicsTotal      = counter("panics_total", "Requests for which choosing met left-alone endpoints only, by the state of the one it took in the end.", "route", "state")
	endpointEjected  = gauge("endpoint_ejected", "1 if the endpoint is left alone for the reason.", "route", "endpoint", "reason")

	probesSent    = counter("load_probes_total", "How often servers were asked how busy they are.", "route")
	probesFailed  = counter("load_probes_failed_total", "How often they gave no answer to that which can be believed.", "route")
	probesRefused = counter("load_probes_refused_total", "How often they were not asked because too many were being asked.", "route")

	endpointState    = gauge("endpoint_state", "1 for the state in which the endpoint is, 0 for the others.", "route", "endpoint", "state")
	endpointHealthy  = gauge("endpoint_healthy", "1 if its probes succeed. Only where there are probes.", "route", "endpoint")
	endpointChanges  = counter("endpoint_health_changes_total", "How often it became healthy or unhealthy. Only where there are probes.", "route", "endpoint")
	endpointBreaker  = gauge("endpoint_breaker_state", "1 for the state in which the endpoint's breaker is, 0 for the others. Only where there are breakers.", "route", "endpoint", "state")
	endpointOpened   = counter("endpoint_breaker_opened_total", "How often the endpoint's breaker opened. Only where there are breakers.", "route", "endpoint")
	endpointBroken   = counter("endpoint_breaker_refused_total", "How often the endpoint was asked for a place while its breaker was open. Only where there are breakers.", "route", "endpoint")
	endpointInFlight = gauge("endpoint_in_flight", "Requests at the endpoint.", "route", "endpoint")
	endpointPlaces   = gauge("endpoint_places", "Requests that may be at the endpoint at a time.", "route", "endpoint")
	endpointCost     = gauge("endpoint_cost", "What choosing compares; less is better.", "route", "endpoint")
	endpointLatency  = gauge("endpoint_latency_seconds", "How long a request is expected to take there.", "route", "endpoint")
	endpointShare    = gauge("endpoint_share", "Its part of the attempts of the last 10 s, from 0 to 1.", "route", "endpoint")
	endpointAttempts = counter("endpoint_attempts_total", "Attempts that have returned.", "route", "endpoint", "outcome")
	endpointReports  = counter("endpoint_load_reports_total", "How often the endpoint said how busy it is, and whether that can be believed: valid or invalid.", "route", "endpoint", "outcome")

	metrics = []metric{
		buildInfo, draining, generation, configTime, configBad, requestsTotal, requestsInFlight, rejectionsTotal, ownAnswersTotal,
		limitPlaces, limitInFlight, bufferSeats, bufferSeated, bufferQueued, bufferExpired, refusedTotal, timeoutsTotal, retriesTotal, retriesRefused,
		budgetBalance, hedgesTotal, hedgesWon, hedgesRefused, waiting, discoveryFailed, ejectionsTotal, ejectionsRefused, endpointsEjected, endpointsMay, panicsTotal, endpointEjected,
		probesSent, probesFailed, probesRefused,
		endpointState, endpointHealthy, endpointChanges, endpointBreaker, endpointOpened, endpointBroken, endpointInFlight, endpointPlaces,
		endpointCost, endpointLatency, endpointShare, endpointAttempts, endpointReports,
	}
)

// A collector reads the state anew for each scrape, so that between two of them metrics cost nothing.
type collector struct{ admin *Admin }

// Describe sends all descriptions.
func (collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range metrics {
		to <- m.desc
	}
}

// Collect sends all values.
func (c collector) Collect(to chan<- prometheus.Metric) {
	send := func(m metric, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
	}
	state := c.admin.source.State()
	send(buildInfo, 1, versionString, runtime.Version())
	send(draining, flag(state.Draining))
	send(generation, float64(state.Config.Generation))
	send(configTime, float64(state.Config.Since.UnixMilli())/1000)
	send(configBad, flag(state.Config.Refused != nil))
	collectRequests(send, state, c.admin.requests.rejected())
	collectLayers(send, state)
	collectEndpoints(send, state, c.admin.meter.lately())
}

type sender func(m metric, value float64, labels ...string)

func collectRequests(send sender, state proxy.State, rejections map[string]uint64) {
	send(requestsTotal, float64(state.Requests.Total), route)
	send(requestsInFlight, float64(state.Requests.InFlight), route)
	for reason, n := range rejections {
		send(rejectionsTotal, float64(n), route, reason)
	}
	for reason, n := range state.Requests.Reasons {
		send(ownAnswersTotal, float64(n), route, reason)
	}
}

func collectLayers(send sender, state proxy.State) {
	send(limitPlaces, float64(state.Limit.Limit), route)
	send(limitInFlight, float64(state.Limit.InFlight), route)
	send(bufferSeats, float64(state.Buffer.Bound), route)
	send(bufferSeated, float64(state.Buffer.Seated), route)
	send(bufferQueued, float64(state.Buffer.Queued), route)
	send(bufferExpired, float64(state.Buffer.Expired), route)
	for layer, n := range state.Refusals {
		send(refusedTotal, float64(n), route, layer)
	}
	send(timeoutsTotal, float64(state.Timeout.Calls), route)
	send(retriesTotal, float64(state.Retry.Retries), route)
	send(budgetBalance, state.Budget.Balance, route)
	for reason, n := range map[string]uint64{
		"attempts": state.Retry.OutOfAttempts, "budget": state.Retry.OutOfBudget, "time": state.Retry.OutOfTime,
		"body": state.Retry.NotCopyable, "retry_after": state.Retry.TooLong, "told_not_to": state.Retry.Final, "no_room": state.Retry.Unready,
	} {
		send(retriesRefused, float64(n), route, reason)
	}
	send(hedgesTotal, float64(state.Hedge.Hedges), route)
	send(hedgesWon, float64(state.Hedge.Won), route)
	for reason, n := range map[string]uint64{
		"request": state.Hedge.NotAllowed, "budget": state.Hedge.OutOfBudget, "no_room": state.Hedge.NotReady,
	} {
		send(hedgesRefused, float64(n), route, reason)
	}
	send(waiting, float64(state.Waiting), route)
	send(discoveryFailed, flag(state.Discovery != nil), route)
	collectGuard(send, state)
	send(probesSent, float64(state.Probes.Sent), route)
	send(probesFailed, float64(state.Probes.Failed), route)
	send(probesRefused, float64(state.Probes.Refused), route)
}

func collectGuard(send sender, state proxy.State) {
	for why := range eject.Whys {
		send(ejectionsTotal, float64(state.Guard.Ejected[why]), route, why.String())
		send(ejectionsRefused, float64(state.Guard.Refused[why]), route, why.String())
	}
	send(endpointsEjected, float64(state.Guard.Out), route)
	send(endpointsMay, float64(state.Guard.Allowed), route)
	send(panicsTotal, float64(state.Panics.Ready), route, "ready")
	send(panicsTotal, float64(state.Panics.Probing), route, "probing")
	send(panicsTotal, float64(state.Panics.Failed), route, "failed")
}

// collectEndpoints sends one set of values for each key. A removed endpoint may still be there when its key is back: their
// requests add up, and what else there is to say is about the one that is not removed.
func collectEndpoints(send sender, state proxy.State, lately recent) {
	sum := map[string]*endpointSum{}
	for i, id := range identify(state.Endpoints) {
		e := state.Endpoints[i]
		s := sum[e.Key]
		if s == nil {
			s = &endpointSum{EndpointState: e}
			sum[e.Key] = s
		} else {
			s.add(e)
		}
		s.share += lately.endpoints[id].share
	}
	for key, s := range sum {
		s.collect(send, key)
	}
}

type endpointSum struct {
	proxy.EndpointState

	share float64
}

func (s *endpointSum) add(e proxy.EndpointState) {
	other := e
	if s.State == balance.Draining {
		other, s.EndpointState = s.EndpointState, e
	}
	s.InFlight += other.InFlight
	s.Successes += other.Successes
	s.Failures += other.Failures
	s.Ignored += other.Ignored
	s.Reports += other.Reports
	s.BadReports += other.BadReports
}

func (s *endpointSum) collect(send sender, key string) {
	for _, state := range []balance.State{
		balance.Dialling, balance.BackingOff, balance.NotReady, balance.Ready, balance.Closed, balance.Draining,
	} {
		send(endpointState, flag(s.State == state), route, key, state.String())
	}
	for why := range eject.Whys {
		send(endpointEjected, flag(slices.Contains(s.Ejected, why)), route, key, why.String())
	}
	if s.Health != nil {
		send(endpointHealthy, flag(s.Health.Healthy), route, key)
		send(endpointChanges, float64(s.Health.Changes), route, key)
	}
	if s.Breaker != nil {
		for _, state := range []breaker.State{breaker.Closed, breaker.Open, breaker.HalfOpen} {
			send(endpointBreaker, flag(s.Breaker.State == state), route, key, state.String())
		}
		send(endpointOpened, float64(s.Breaker.Opened), route, key)
		send(endpointBroken, float64(s.Breaker.Refused), route, key)
	}
	send(endpointInFlight, float64(s.InFlight), route, key)
	send(endpointPlaces, float64(s.Limit.Limit), route, key)
	send(endpointCost, s.Cost, route, key)
	send(endpointLatency, float64(s.Latency)/float64(time.Second), route, key)
	send(endpointShare, s.share, route, key)
	send(endpointAttempts, float64(s.Successes), route, key, "success")
	send(endpointAttempts, float64(s.Failures), route, key, "failure")
	send(endpointAttempts, float64(s.Ignored), route, key, "ignored")
	send(endpointReports, float64(s.Reports), route, key, "valid")
	send(endpointReports, float64(s.BadReports), route, key, "invalid")
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
