// Package proxy is a reverse proxy over the stack: it sheds what is too much, queues, limits, tries again and balances, and finishes
// what is in flight before it ends.
package proxy

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Config says where to listen, whom to send to, and within which bounds. [Defaults] has sensible numbers.
type Config struct {
	// Listen is the address to listen on, as host:port. Port 0 takes a free one.
	Listen string
	// Targets are the servers, as http://host:port or https://host:port.
	Targets []string

	// Buffer is how many requests may wait for a place. Who comes when as many wait is answered 503 at once.
	Buffer int
	// BufferWait is how long one waits.
	BufferWait time.Duration
	// Limit is how many requests are worked on at a time, over all servers.
	Limit int
	// EndpointLimit is how many are at one server at a time.
	EndpointLimit int
	// Timeout bounds the time from a request's place to the beginning of its answer, over all attempts.
	Timeout time.Duration
	// Attempts is how often a request is sent at most.
	Attempts int
	// RetryRatio is how many extra attempts are earned by one success.
	RetryRatio float64
	// ReplayBytes is how much of a request body is kept so that it can be sent again.
	ReplayBytes int64
	// Drain is how long requests in flight may take to finish after the signal to end.
	Drain time.Duration
}

// Defaults returns a Config that lacks its targets only.
func Defaults() Config {
	return Config{
		Listen:        "127.0.0.1:8080",
		Buffer:        512,
		BufferWait:    5 * time.Second,
		Limit:         1024,
		EndpointLimit: 256,
		Timeout:       30 * time.Second,
		Attempts:      3,
		RetryRatio:    0.2,
		ReplayBytes:   64 << 10,
		Drain:         30 * time.Second,
	}
}

// The ranges, in words, of what Validate accepts.
const (
	AcceptedListen     = "host:port, where the port is 0 to 65535 and the host may be left out"
	AcceptedTargets    = "http://host[:port] or https://host[:port], separated by commas, each once"
	AcceptedPlaces     = "1 to 1000000"
	AcceptedBufferWait = "1ms to 10m"
	AcceptedTimeout    = "1ms to 1h"
	AcceptedAttempts   = "1 to 10"
	AcceptedRetryRatio = "0 to 1"
	AcceptedReplay     = "0 to 16MiB"
	AcceptedDrain      = "0s to 1h"
	maxPlaces          = 1_000_000
	maxReplay          = 16 << 20
)

// Validate says which flags are wrong, each with what it accepts, and returns the first of them.
func (c Config) Validate() error {
	if err := validateListen(c.Listen); err != nil {
		return err
	}
	targets, err := ParseTargets(c.Targets)
	if err != nil {
		return err
	}
	if self := selfAmong(targets, c.Listen); self != "" {
		return fmt.Errorf("--to must name other servers; %s is the proxy itself, by --listen %s", self, c.Listen)
	}
	for _, places := range []struct {
		flag string
		n    int
	}{{"--buffer", c.Buffer}, {"--limit", c.Limit}, {"--endpoint-limit", c.EndpointLimit}} {
		if places.n < 1 || places.n > maxPlaces {
			return fmt.Errorf("%s must be %s, got %d", places.flag, AcceptedPlaces, places.n)
		}
	}
	switch {
	case c.BufferWait < time.Millisecond || c.BufferWait > 10*time.Minute:
		return fmt.Errorf("--buffer-wait must be %s, got %v", AcceptedBufferWait, c.BufferWait)
	case c.Timeout < time.Millisecond || c.Timeout > time.Hour:
		return fmt.Errorf("--timeout must be %s, got %v", AcceptedTimeout, c.Timeout)
	case c.Attempts < 1 || c.Attempts > 10:
		return fmt.Errorf("--attempts must be %s, got %d", AcceptedAttempts, c.Attempts)
	case math.IsNaN(c.RetryRatio) || c.RetryRatio < 0 || c.RetryRatio > 1:
		return fmt.Errorf("--retry-ratio must be %s, got %v", AcceptedRetryRatio, c.RetryRatio)
	case c.ReplayBytes < 0 || c.ReplayBytes > maxReplay:
		return fmt.Errorf("--replay-bytes must be %s, got %d", AcceptedReplay, c.ReplayBytes)
	case c.Drain < 0 || c.Drain > time.Hour:
		return fmt.Errorf("--drain must be %s, got %v", AcceptedDrain, c.Drain)
	}
	return nil
}

func validateListen(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("--listen must be %s, got %q", AcceptedListen, addr)
	}
	return nil
}

// selfAmong returns the target that is the address to listen on, where that can be told without asking the network: a request
// would go round in circles until nothing has room.
func selfAmong(targets []string, listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" {
		return ""
	}
	for _, target := range targets {
		u, err := url.Parse(target)
		if err != nil || u.Port() != port {
			continue
		}
		to := u.Hostname()
		named := to == "localhost" || host == "localhost" // one of several loopback addresses, who knows which
		if to == strings.ToLower(host) || isLoopback(to) && (isWildcard(host) || isLoopback(host) && named) {
			return target
		}
	}
	return ""
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func isWildcard(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// ParseTargets returns the servers' URLs in one spelling: lower case, with a port, without a slash at the end. Its error names the flag,
// what is accepted, and what is wrong with which target.
func ParseTargets(targets []string) ([]string, error) {
	refused := func(format string, args ...any) error {
		return fmt.Errorf("--to must be %s; %w", AcceptedTargets, fmt.Errorf(format, args...))
	}
	if len(targets) == 0 {
		return nil, refused("there is none")
	}
	seen := map[string]string{}
	var all []string
	for _, target := range targets {
		if strings.TrimSpace(target) == "" {
			return nil, refused("there is an empty one")
		}
		u, err := parseTarget(strings.TrimSpace(target))
		if err != nil {
			return nil, refused("%q has %w", target, err)
		}
		if first, twice := seen[u]; twice {
			return nil, refused("%q and %q are the same server", first, target)
		}
		seen[u] = target
		all = append(all, u)
	}
	return all, nil
}

// parseTarget returns target in the one spelling, or what it has that it must not have.
func parseTarget(target string) (string, error) {
	u, err := url.Parse(target)
	switch {
	case !strings.Contains(target, "://"):
		return "", errors.New("no http:// or https://")
	case err != nil:
		return "", fmt.Errorf("a mistake: %w", reasonOf(err))
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("an unsupported scheme, %q", u.Scheme)
	case u.User != nil:
		return "", errors.New("a user or a password")
	case u.Path != "" && u.Path != "/":
		return "", errors.New("a path")
	case u.RawQuery != "" || u.ForceQuery:
		return "", errors.New("a query")
	case u.Fragment != "":
		return "", errors.New("a fragment")
	}
	return spell(u)
}

// reasonOf is what is wrong with a URL, without the URL: the caller quotes that.
func reasonOf(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// spell writes scheme, host and port in the one way that all spellings of a server have in common.
func spell(u *url.URL) (string, error) {
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if host == "" {
		return "", errors.New("no host")
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.String()
	}
	if port == "" {
		if strings.HasSuffix(u.Host, ":") {
			return "", errors.New("no port after the colon")
		}
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", fmt.Errorf("a port, %s, that is not from 1 to 65535", port)
	}
	return u.Scheme + "://" + net.JoinHostPort(host, strconv.FormatUint(n, 10)), nil
}
