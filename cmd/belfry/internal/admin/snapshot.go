package admin

import (
	"time"
)

// A Snapshot is what /api/state answers. Counts are since the start; rates, shares and quantiles are over the last WindowSeconds, and
// null where nothing happened that they could be about.
type Snapshot struct {
	Time    time.Time `json:"time"`
	Version string    `json:"version"`
	// Status is the whole in a word, and Problems says why, the most urgent first.
	Status   Status   `json:"status"`
	Problems []string `json:"problems"`

	Address       string  `json:"address"`
	UptimeSeconds float64 `json:"uptime_seconds"`
	WindowSeconds float64 `json:"window_seconds"`
	Draining      bool    `json:"draining"`
	// Zone is where the proxy is, empty if nobody has said so.
	Zone   string `json:"zone,omitempty"`
	Config Config `json:"config"`
	// Stack is the layers in the order in which a request meets them.
	Stack []Layer `json:"stack"`

	Requests Requests `json:"requests"`
	Reasons  []Reason `json:"reasons"`
	Shed     uint64   `json:"shed"`
	// Refusals counts what each layer has turned away or failed by its deadline. One request may be among several.
	Refusals  map[string]uint64 `json:"refusals"`
	Buffer    Buffer            `json:"buffer"`
	Limit     Limit             `json:"limit"`
	Timeout   Timeout           `json:"timeout"`
	Retry     Retry             `json:"retry"`
	Hedge     Hedge             `json:"hedge"`
	Discovery Discovery         `json:"discovery"`
	Endpoints []Endpoint        `json:"endpoints"`
	Guard     Guard             `json:"guard"`
}

// A Config is which configuration runs, and whether a newer one was refused.
type Config struct {
	File       string     `json:"file,omitempty"`
	Generation int        `json:"generation"`
	Since      time.Time  `json:"since"`
	Refused    string     `json:"refused,omitempty"`
	RefusedAt  *time.Time `json:"refused_at,omitempty"`
}

// A Layer is one of the stack: "buffer", "512, max wait 5s".
type Layer struct {
	Name     string `json:"name"`
	Settings string `json:"settings,omitempty"`
}

// Requests are what clients asked for.
type Requests struct {
	Total    uint64 `json:"total"`
	InFlight int64  `json:"in_flight"`
	// FailedTotal counts those that failed.
	FailedTotal uint64 `json:"failed"`
	// Outcomes counts those that are over by how they ended.
	Outcomes map[string]uint64 `json:"outcomes"`
	// Rate, Rejected and Failed are a second. Rejected had no room; Failed were answered 500 or above, or not at all.
	Rate     float64 `json:"rate"`
	Rejected float64 `json:"rejected_rate"`
	Failed   float64 `json:"failed_rate"`
	// P50 and P99 are of the time until the answer began, of those that a server answered or that were too late.
	P50 *float64 `json:"p50_ms"`
	P99 *float64 `json:"p99_ms"`
}

// A Reason is why the proxy answered itself, and how often.
type Reason struct {
	Reason string `json:"reason"`
	Count  uint64 `json:"count"`
}

// A Buffer is the waiting room.
type Buffer struct {
	Bound     int    `json:"bound"`
	Seated    int    `json:"seated"`
	Queued    int    `json:"queued"`
	Admitted  uint64 `json:"admitted"`
	Rejected  uint64 `json:"rejected"`
	Cancelled uint64 `json:"cancelled"`
	Expired   uint64 `json:"expired"`
	Failed    uint64 `json:"failed"`
}

// A Limit is a bound on calls in flight.
type Limit struct {
	Limit    int `json:"limit"`
	InFlight int `json:"in_flight"`
	Reserved int `json:"reserved"`
	Waiting  int `json:"waiting"`
}

// A Timeout counts deadlines that have passed.
type Timeout struct {
	Calls uint64 `json:"calls"`
	Waits uint64 `json:"waits"`
}

// A Retry is what is tried again, and what it is paid from.
type Retry struct {
	Retries       uint64  `json:"retries"`
	Rate          float64 `json:"rate"`
	OutOfAttempts uint64  `json:"out_of_attempts"`
	OutOfBudget   uint64  `json:"out_of_budget"`
	OutOfTime     uint64  `json:"out_of_time"`
	NotCopyable   uint64  `json:"not_copyable"`
	Unready       uint64  `json:"unready"`
	// Budget is how many retries could be paid for now.
	Budget float64 `json:"budget"`
}

// A Hedge is what is sent once more because it takes long. All are 0 without such a layer.
type Hedge struct {
	Hedges      uint64 `json:"hedges"`
	Won         uint64 `json:"won"`
	NotAllowed  uint64 `json:"not_allowed"`
	OutOfBudget uint64 `json:"out_of_budget"`
	NotReady    uint64 `json:"not_ready"`
	// DelaySeconds is how long an attempt is waited for now, 0 if that is not known yet.
	DelaySeconds float64 `json:"delay_seconds"`
}

// A Discovery is where endpoints are from. Waiting is how many requests wait because none is ready.
type Discovery struct {
	Waiting int    `json:"waiting"`
	Error   string `json:"error,omitempty"`
}

// An Endpoint is a server.
type Endpoint struct {
	Key  string `json:"key"`
	Addr string `json:"addr"`
	// State is what the balancer says, Condition what an operator calls it: see [Condition].
	State     string    `json:"state"`
	Condition Condition `json:"condition"`
	// Weight, at least 1, Zone and Priority are what it is chosen by beside its load.
	Weight   int    `json:"weight"`
	Zone     string `json:"zone,omitempty"`
	Priority int    `json:"priority,omitempty"`
	// Share is its part of all requests that were sent, from 0 to 1.
	Share    *float64 `json:"share"`
	Rate     float64  `json:"rate"`
	Failed   float64  `json:"failed_rate"`
	InFlight int      `json:"in_flight"`
	Reserved int      `json:"reserved"`
	Limit    int      `json:"limit"`
	// Cost is what choosing compares, Latency what a request is expected to take; null if nobody knows.
	Cost    *float64 `json:"cost"`
	Latency *float64 `json:"latency_ms"`
	// SlowStart is how many times more it costs because it is new or has come back; null if it does not.
	SlowStart *float64 `json:"slow_start,omitempty"`
	// Successes, Failures and Ignored count attempts that are over, responses included.
	Successes uint64 `json:"successes"`
	Failures  uint64 `json:"failures"`
	Ignored   uint64 `json:"ignored"`
	// NotReady is why it is not ready, LastError the error of the last attempt that failed with one.
	NotReady  string  `json:"not_ready,omitempty"`
	LastError string  `json:"last_error,omitempty"`
	Health    *Health `json:"health,omitempty"`
	// Breaker is what its breaker says, if there is one.
	Breaker *Breaker `json:"breaker,omitempty"`
	// Ejected is why it is left alone: breaker, health, outlier, overload; empty if it is not. EjectedSeconds is for how long at least.
	Ejected        []string `json:"ejected,omitempty"`
	EjectedSeconds float64  `json:"ejected_seconds,omitempty"`
	// Outlier is how it does among its peers, if they are compared.
	Outlier *Outlier `json:"outlier,omitempty"`
}

// An Outlier is how an endpoint did among its peers in the latest interval.
type Outlier struct {
	Calls         uint64  `json:"calls"`
	Success       float64 `json:"success"`
	MedianSuccess float64 `json:"median_success"`
	// Latency and MedianLatency are 0 if nobody compares them.
	Latency       float64 `json:"latency_ms"`
	MedianLatency float64 `json:"median_latency_ms"`
	Peers         int     `json:"peers"`
	// Ejections counts how often it was left alone, Spared how often it would have been if not too many had been.
	Ejections uint64 `json:"ejections"`
	Spared    uint64 `json:"spared"`
}

// A Guard is what the guard rail says: how many endpoints are left alone, and may be.
type Guard struct {
	Endpoints int               `json:"endpoints"`
	Out       int               `json:"out"`
	Allowed   int               `json:"allowed"`
	Ejected   map[string]uint64 `json:"ejected"`
	Refused   map[string]uint64 `json:"refused"`
	// PanicReady, PanicProbing and PanicFailed count requests for which choosing met left-alone endpoints only, by which it found in the end.
	PanicReady   uint64 `json:"panic_ready"`
	PanicProbing uint64 `json:"panic_probing"`
	PanicFailed  uint64 `json:"panic_failed"`
}

// A Breaker is what an endpoint's breaker says.
type Breaker struct {
	// State is closed, open or half-open.
	State string    `json:"state"`
	Since time.Time `json:"since"`
	// NextProbe is when a request is let through to try the endpoint; null while it is closed.
	NextProbe *time.Time `json:"next_probe"`
	LastError string     `json:"last_error,omitempty"`
	// Failures counts the requests that failed and counted, Opened how often it opened, Probes the requests let through to try, Refused
	// how often the endpoint was passed by.
	Failures uint64 `json:"failures"`
	Opened   uint64 `json:"opened"`
	Probes   uint64 `json:"probes"`
	Refused  uint64 `json:"refused"`
}

// A Health is what probes say.
type Health struct {
	Healthy   bool      `json:"healthy"`
	Since     time.Time `json:"since"`
	LastError string    `json:"last_error,omitempty"`
	Probes    uint64    `json:"probes"`
	Failures  uint64    `json:"failures"`
	// Changes counts how often that changed.
	Changes uint64 `json:"changes"`
}
