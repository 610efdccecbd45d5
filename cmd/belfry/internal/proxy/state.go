package proxy

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/hedge"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/outlier"
	"github.com/belfry-go/belfry/retry"
	"github.com/belfry-go/belfry/timeout"
)

// A State is what there is to see of a running proxy. All counts are since its start, over all configurations that it has had.
type State struct {
	// Stack lists the layers in the order in which a request meets them.
	Stack string
	// Address is what it listens on.
	Address string
	// Started is when it began to listen.
	Started time.Time
	// Zone is where it is, empty if nobody has said so.
	Zone string
	// Draining says that the signal to end has come. It turns true before anything else happens.
	Draining bool
	// Config is which configuration it runs.
	Config ConfigState

	// Requests is what came in.
	Requests RequestStats
	// Endpoints are the servers in order of appearance, removed ones too until their last request is over.
	Endpoints []EndpointState
	// Waiting is the number of requests in line because no endpoint is ready.
	Waiting int
	// Discovery is the last error of looking for endpoints, nil if something was found after it.
	Discovery error
	// Guard is what the guard rail has counted, Panics how requests were sent for which it left no server at first sight.
	Guard  eject.Stats
	Panics balance.Panics
	// Probes counts how often servers were asked how busy they are.
	Probes balance.ProbeStats
	// Targets are the configured ones, and those that are about to leave.
	Targets []TargetState

	// Limit, Buffer, Timeout, Retry, Hedge and Budget are what these layers have counted, Shed how many requests were refused for
	// want of room.
	Limit   limit.Stats
	Buffer  buffer.Stats
	Timeout timeout.Stats
	Retry   retry.Stats
	Hedge   hedge.Stats
	Budget  budget.Stats
	Shed    uint64
	// Refusals counts those that each layer has turned away, and the calls that a deadline has failed, by the layer's name. One
	// request may be among several.
	Refusals map[string]uint64
}

// A ConfigState says which configuration a proxy runs.
type ConfigState struct {
	// File is where it is from, empty if from flags.
	File string
	// Generation is 1 at the start, and one more after each reload that took effect.
	Generation int
	// Since is when that was.
	Since time.Time
	// Refused is why the latest reload was refused, nil if it was not.
	Refused error
	// RefusedAt is when.
	RefusedAt time.Time
}

// A RequestStats is what came in, and how it was answered.
type RequestStats struct {
	// Total counts requests, InFlight those that are not over.
	Total    uint64
	InFlight int64
	// Answered counts those that have been answered, by the first digit of the status: Answered[2] is 200 to 299.
	Answered [6]uint64
	// Failed counts those of them that the proxy had to answer itself, ClientsGone the clients that left before.
	Failed, ClientsGone uint64
	// Reasons counts both by the reason in X-Belfry-Reason.
	Reasons map[string]uint64
}

// An EndpointState is what there is to see of a server.
type EndpointState struct {
	balance.EndpointStats
	// Limit is what its own limit has counted.
	Limit limit.Stats
	// Health is the result of its probes, nil if it is not probed.
	Health *HealthState
	// Breaker is what its breaker says, nil if there is none.
	Breaker *breaker.Stats
	// Outlier is how it does among its peers, nil if nobody compares them.
	Outlier *outlier.Stats
}

// A HealthState is what the probes of a server say.
type HealthState struct {
	Healthy bool
	Since   time.Time
	// LastError is that of the latest probe that has failed, nil if the server is healthy and the latest has not.
	LastError                 error
	Probes, Failures, Refused uint64
	// Changes counts how often it became healthy or unhealthy.
	Changes uint64
}

// A Record is one request that is over, for whoever counts them. A request whose connection was upgraded is over when that is.
type Record struct {
	Method, Host, Path string
	// Status is what was answered; 499 if the client left before, and 0 if the connection broke first.
	Status int
	// Reason is why the proxy answered itself, empty if it did not.
	Reason string
	// Endpoint is the key of the server that was asked last, empty if none was. Attempts is how often one was asked.
	Endpoint string
	Attempts int
	// Bytes is the length of the answer's body.
	Bytes int64
	// Latency is the time until the answer began, Took until its end.
	Latency, Took time.Duration
}

// Options are what a proxy is given besides its Config.
type Options struct {
	// File is where the Config is from, for State; empty if from flags.
	File string
	// Reload reads the Config again, on SIGHUP. Nil means that there is nothing to read again.
	Reload func() (Config, error)
	// Level is set to Config.LogLevel, for whoever writes the log. Nil means that the level is none of the proxy's business.
	Level *slog.LevelVar
	// Admin makes what is served at Config.Admin. It is called once, before anything runs: the Server's On methods are for it alone,
	// State for later. Nil means that nothing is served there.
	Admin func(s *Server) http.Handler
	// Running is called once, as soon as there is a State. Nil means that nobody wants to know.
	Running func()
}
