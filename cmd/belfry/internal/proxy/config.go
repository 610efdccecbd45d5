// Package proxy is a reverse proxy over the stack: it sheds what is too much, queues, limits, tries again and balances, takes another
// configuration while it runs, and finishes what is in flight before it ends.
package proxy

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/belfry-go/belfry/belfryhttp"
)

// Config says where to listen, whom to send to, and within which bounds. [Defaults] has sensible numbers.
type Config struct {
	// Listen is the address to listen on, as host:port. Port 0 takes a free one.
	Listen string
	// Admin is the address to show what goes on at, as host:port, for those who may know. Empty means nowhere.
	Admin string
	// TLS is what clients are shown. Without, they speak in the clear.
	TLS ListenTLS

	// Targets are the servers: [AcceptedTargets].
	Targets []string
	// TargetTLS says whom to trust among them.
	TargetTLS TargetTLS
	// Zone is where the proxy is, in the words of the targets: servers of that zone are preferred. Empty means that all are alike.
	Zone string
	// Sticky says what requests of one kind are known by, which all go to one server, if it has room.
	Sticky Sticky
	// CostBytes is how many bytes of a request's body are as much work as a request without one. 0 means that bodies do not matter.
	CostBytes int64
	// Warm is how many connections to a server are opened before it gets requests.
	Warm int
	// PerAddress is how many connections, or pools of them, a server's address has, each of which is as a server of its own. RotateEvery is how long
	// one stays until it is made anew. 0 means for as long as its address.
	PerAddress  int
	RotateEvery time.Duration
	// DiscoveryInterval is how often names are looked up and files are read. 0 means every 30 s and every 2 s.
	DiscoveryInterval time.Duration
	// Subset says which of the servers that they name are used.
	Subset Subset
	// Load is how it is told which server is less busy: one of [Loads].
	Load string
	// ProbePath is where servers are asked how busy they are, if Load is LoadProbing.
	ProbePath string
	// Health says how servers are probed.
	Health Health
	// Breaker says when a server that fails is left alone.
	Breaker Breaker
	// Outlier says when a server that does worse than the others is left alone.
	Outlier Outlier
	// Eject says how many servers may be left alone at a time.
	Eject Eject

	// Rate is how many requests are taken in a second.
	Rate Rate
	// Shed makes who comes when there is neither a place nor a seat be answered 503 at once. Without, they wait for a seat.
	Shed bool
	// Buffer is how many requests may wait for a place.
	Buffer int
	// BufferWait is how long one waits.
	BufferWait time.Duration
	// Limit is how many requests are worked on at a time, over all servers.
	Limit int
	// EndpointLimit is how many are at one server at a time.
	EndpointLimit int
	// AdaptiveEndpoints makes each server's limit find itself by how long it takes, from 1 to EndpointLimit.
	AdaptiveEndpoints bool
	// Timeout bounds the time from a request's place to the beginning of its answer, over all attempts.
	Timeout time.Duration
	// Attempts is how often a request is sent at most.
	Attempts int
	// AttemptTimeout bounds the time until an answer begins of an attempt after which another can follow. 0 means that only Timeout does.
	AttemptTimeout time.Duration
	// Hedge says when a request is sent to a second server because the first is slow.
	Hedge Hedge
	// RetryRatio is how many extra attempts are earned by one success.
	RetryRatio float64
	// ReplayBytes is how much of a request body is kept so that it can be sent again.
	ReplayBytes int64

	// Client is what a client may take its time for.
	Client Client
	// TrustedForwarders are the networks of those whose X-Forwarded fields are believed.
	TrustedForwarders []netip.Prefix
	// AccessLog has a line logged for each request.
	AccessLog bool
	// LogLevel is how much is logged: debug, info, warn or error.
	LogLevel string

	// Decisions is how many of the latest choices of a server are kept, for those who ask why one gets little. 0 means none.
	Decisions int
	// DrainDelay is how long requests are taken after the signal to end, so that those who send them can learn of it.
	DrainDelay time.Duration
	// Drain is how long requests in flight may take to finish after that.
	Drain time.Duration
}

// A ListenTLS is what clients are shown: files in PEM.
type ListenTLS struct{ Cert, Key string }

// A TargetTLS says whom to trust among servers at https addresses.
type TargetTLS struct {
	// CA is a file of certificates in PEM. Empty means those of the system.
	CA string
	// ServerName is whose certificate servers must have. Empty means the host in their address.
	ServerName string
}

// A Subset says which of the servers one proxy of many uses: [discover.Subset]. Without Size all are used.
type Subset struct {
	Size         int
	Identity     string
	Index, Count int
}

// A Health says how servers are probed.
type Health struct {
	// Path is what is asked for. Empty means that there are no probes.
	Path string
	// Interval is the longest pause between two probes, Timeout bounds one.
	Interval, Timeout time.Duration
	// Unhealthy is how many failures in a row take a server out, Healthy how many successes bring it back.
	Unhealthy, Healthy int
}

// A Breaker says when a server that fails is left alone. Without Consecutive and Ratio none is.
type Breaker struct {
	// Consecutive is how many failures in a row it takes, 0 if they do not count.
	Consecutive int
	// Ratio is the share of failures within Window that it takes, if there were MinCalls; 0 if it does not count.
	Ratio    float64
	Window   time.Duration
	MinCalls int
	// MinPause is for how long it is left alone first; that doubles up to MaxPause.
	MinPause, MaxPause time.Duration
}

// An Outlier says when a server that does worse than the others is left alone. Without Gap and Latency none is.
type Outlier struct {
	// Gap is how much smaller the share of its good answers has to be than the median, 0 if that does not count.
	Gap float64
	// Latency is how many times the median latency it has to take, 0 if that does not count.
	Latency float64
	// Interval is how often servers are compared, if they had MinCalls since the last time.
	Interval time.Duration
	MinCalls int
	// MinPause is for how long one is left alone first; that doubles up to MaxPause.
	MinPause, MaxPause time.Duration
}

// An Eject says how many servers may be left alone at a time, for whatever reason.
type Eject struct {
	// MaxShare is which part of all, though one always may be; Keep is how many never are.
	MaxShare float64
	Keep     int
	// RetryAfter is how long a server is left alone at most because its answer has asked for it, 0 if nobody listens.
	RetryAfter time.Duration
}

// A Hedge says when a request is sent to a second server because the first is slow. Without Delay and Percentile none is.
type Hedge struct {
	// Delay is how long an attempt is waited for. 0 means that Percentile decides.
	Delay time.Duration
	// Percentile is the share of attempts that have their answer by then. It goes without a Delay only.
	Percentile float64
	// Max is how many extra attempts there are at most for each attempt, each a delay after the one before.
	Max int
}

// A Rate is how many requests are taken in a second. Without PerSecond there is no bound.
type Rate struct {
	PerSecond int
	// Burst is how many may come at once after a quiet time. 0 means PerSecond.
	Burst int
}

// A Client is what a client may take its time for.
type Client struct {
	// HeaderTimeout bounds how long a request's header takes to arrive, and a TLS handshake.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a connection may be idle between two requests.
	IdleTimeout time.Duration
	// StallTimeout is how long a client may take to read what was written for it: 32 KiB or less.
	StallTimeout time.Duration
	// HeaderBytes is how long a request's header may be.
	HeaderBytes int64
}

// Defaults returns a Config that lacks its targets only.
func Defaults() Config {
	return Config{
		Listen:        "127.0.0.1:8080",
		Admin:         "127.0.0.1:9900",
		Load:          LoadExpected,
		PerAddress:    1,
		ProbePath:     belfryhttp.DefaultProbePath,
		LogLevel:      "info",
		Health:        Health{Interval: 10 * time.Second, Timeout: 2 * time.Second, Unhealthy: 3, Healthy: 2},
		Breaker:       Breaker{Window: 10 * time.Second, MinCalls: 20, MinPause: time.Second, MaxPause: time.Minute},
		Outlier:       Outlier{Interval: 10 * time.Second, MinCalls: 30, MinPause: 30 * time.Second, MaxPause: 5 * time.Minute},
		Eject:         Eject{MaxShare: 0.1, Keep: 1, RetryAfter: 30 * time.Second},
		Shed:          true,
		Buffer:        512,
		BufferWait:    5 * time.Second,
		Limit:         1024,
		EndpointLimit: 256,
		Timeout:       30 * time.Second,
		Attempts:      3,
		Hedge:         Hedge{Max: 1},
		RetryRatio:    0.2,
		ReplayBytes:   64 << 10,
		Client: Client{
			HeaderTimeout: 10 * time.Second,
			IdleTimeout:   2 * time.Minute,
			StallTimeout:  time.Minute,
			HeaderBytes:   64 << 10,
		},
		Drain: 30 * time.Second,
	}
}

// Adaptive is what a file says in place of a number for a limit that finds itself.
const Adaptive = "adaptive"

// What Load may be.
const (
	LoadExpected = "expected"
	LoadReported = "reported"
	LoadProbing  = "probing"
	LoadPeakEWMA = "peak_ewma"
	LoadInFlight = "in_flight"
	LoadRandom   = "random"
)

// loadNames is what Load may be, in words.
var loadNames = map[string]string{
	LoadExpected: "expected", LoadReported: "reported", LoadProbing: "probing", LoadPeakEWMA: "peak ewma", LoadInFlight: "in flight", LoadRandom: "random",
}

// logLevels is what LogLevel may be.
var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// The ranges, in words, of what Validate accepts.
const (
	AcceptedListen       = "host:port, where the port is 0 to 65535 and the host may be left out"
	AcceptedAdmin        = AcceptedListen + ", or off"
	AcceptedTargets      = "http://host[:port], https://host[:port], h2c://host[:port], dns:///host:port, srv:///name or file:///path, each once"
	AcceptedZone         = "a name without spaces"
	AcceptedSticky       = "the name of a header or of a cookie, and not both"
	AcceptedDecisions    = "0 to 100000"
	AcceptedCostBytes    = "at least 1 byte"
	AcceptedWarm         = "0 to 1000, and no more than endpoint_limit"
	AcceptedPerAddress   = "1 to 100"
	AcceptedRotate       = "1s to 24h for each of per_address"
	AcceptedFile         = "the path of a file in PEM"
	AcceptedServerName   = "the name of a host"
	AcceptedPlaces       = "1 to 1000000"
	AcceptedEndpoint     = Adaptive + ", or " + AcceptedPlaces
	AcceptedIdentity     = "a text that no other proxy has"
	AcceptedIndex        = "a number from 0 on that is below count"
	AcceptedRate         = "0 to 1000000"
	AcceptedBufferWait   = "1ms to 10m"
	AcceptedTimeout      = "1ms to 1h"
	AcceptedAttempts     = "1 to 10"
	AcceptedAttempt      = "1ms to 1h, or 0s for no bound"
	AcceptedRetryRatio   = "0 to 1"
	AcceptedHedgeDelay   = "1ms to 1h"
	AcceptedPercentile   = "0.01 to 0.999"
	AcceptedReplay       = "0 to 16MiB"
	AcceptedDrain        = "0s to 1h"
	AcceptedInterval     = "100ms to 1h"
	AcceptedLoad         = LoadExpected + ", " + LoadReported + ", " + LoadProbing + ", " + LoadPeakEWMA + ", " + LoadInFlight + " or " + LoadRandom
	AcceptedLogLevel     = "debug, info, warn or error"
	AcceptedProbePath    = "a path that begins with /, without a query"
	AcceptedPath         = "a path that begins with /, with a query or without"
	AcceptedInARow       = "1 to 100"
	AcceptedConsecutive  = "0 to 1000"
	AcceptedFailureRatio = "0 to 1"
	AcceptedShare        = "0.001 to 1"
	AcceptedKeep         = "0 to 1000000"
	AcceptedTimesMedian  = "1 to 100, or 0 for no comparison"
	AcceptedClientTimes  = "10ms to 1h"
	AcceptedHeaderBytes  = "4KiB to 16MiB"
	AcceptedForwarders   = "addresses or networks, such as 10.0.0.1 or 10.0.0.0/8"
	maxPlaces            = 1_000_000
	maxDecisions         = 100_000
	maxWarm              = 1000
	maxPerAddress        = 100
	maxReplay            = 16 << 20
	minHeader, maxHeader = 4 << 10, 16 << 20
)
