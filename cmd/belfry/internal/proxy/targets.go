package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/belfry-go/belfry/discover"
)

// ParseTargets returns targets in one spelling: of servers lower case, with a port, without a slash at the end. Its error is a
// [Problem] that says what is accepted, and what is wrong with which target.
func ParseTargets(targets []string) ([]string, error) {
	all, problem := parseTargets(targets)
	if problem != nil {
		return nil, problem
	}
	return all, nil
}

func parseTargets(targets []string) ([]string, *Problem) {
	refused := func(i int, format string, args ...any) *Problem {
		return &Problem{Key: "targets", Flag: "--to", Index: i, Text: "must be " + AcceptedTargets + "; " + fmt.Sprintf(format, args...)}
	}
	if len(targets) == 0 {
		return nil, refused(-1, "there is none")
	}
	seen := map[string]string{}
	var all []string
	for i, target := range targets {
		if strings.TrimSpace(target) == "" {
			return nil, refused(i, "there is an empty one")
		}
		addr, _, err := discover.Attributes(strings.TrimSpace(target))
		if err != nil {
			return nil, refused(i, "%q has a mistake: %v", target, err)
		}
		u, err := parseTarget(addr)
		if err != nil {
			return nil, refused(i, "%q has %v", target, err)
		}
		if first, twice := seen[u]; twice {
			return nil, refused(i, "%q and %q are the same", first, target)
		}
		seen[u] = target
		said := strings.TrimPrefix(strings.TrimSpace(target), addr)
		all = append(all, strings.Join(append([]string{u}, strings.Fields(said)...), " "))
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
	case u.Scheme == "dns" || u.Scheme == "srv" || u.Scheme == "file":
		return parseSource(u)
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != schemeH2C:
		return "", fmt.Errorf("an unsupported scheme, %q", u.Scheme)
	case u.User != nil:
		return "", errors.New("a user or a password")
	case u.Path != "" && u.Path != "/":
		return "", errors.New("a path")
	case u.RawQuery != "" || u.ForceQuery:
		return "", errors.New("a query")
	case strings.Contains(target, "#"):
		return "", errors.New("a fragment")
	}
	return spell(u)
}

// schemeH2C is the scheme of servers that speak HTTP/2 in the clear, without being asked whether they do.
const schemeH2C = "h2c"

// parseSource returns a target that names several servers in the one spelling.
func parseSource(u *url.URL) (string, error) {
	scheme := ""
	for key, values := range u.Query() {
		if key != "scheme" || len(values) != 1 || values[0] != "http" && values[0] != "https" && values[0] != schemeH2C {
			return "", errors.New("an option that is not ?scheme=http, https or h2c")
		}
		scheme = "?scheme=" + values[0]
	}
	path := u.EscapedPath()
	if u.Scheme != "file" {
		path = strings.ToLower(path)
	}
	spelled := u.Scheme + "://" + path + scheme
	if u.Host != "" || u.User != nil || u.Opaque != "" {
		return "", fmt.Errorf("something between %s:// and the next slash", u.Scheme)
	}
	if _, err := discover.Parse(context.Background(), []string{spelled}, discover.Config{Scheme: "http"}); err != nil {
		return "", fmt.Errorf("a mistake: %w", err)
	}
	return spelled, nil
}

// isSource reports whether a target in the one spelling names several servers.
func isSource(target string) bool {
	return strings.HasPrefix(target, "dns:") || strings.HasPrefix(target, "srv:") || strings.HasPrefix(target, "file:")
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
	} else if strings.ContainsAny(host, ":[]") {
		return "", errors.New("a host that is neither a name nor an address")
	}
	if port == "" {
		if strings.HasSuffix(u.Host, ":") {
			return "", errors.New("no port after the colon")
		}
		port = map[string]string{"http": "80", "https": "443", schemeH2C: "80"}[u.Scheme]
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", fmt.Errorf("a port, %s, that is not from 1 to 65535", port)
	}
	return (&url.URL{Scheme: u.Scheme, Host: net.JoinHostPort(host, strconv.FormatUint(n, 10))}).String(), nil
}

// isSelf reports whether target is the address to listen on, where that can be told without asking the network: a request
// would go round in circles until nothing has room.
func isSelf(target, listen string) bool {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" || isSource(target) {
		return false
	}
	target, _, _ = strings.Cut(target, " ")
	u, err := url.Parse(target)
	if err != nil || u.Port() != port {
		return false
	}
	to := u.Hostname()
	named := to == "localhost" || host == "localhost" // one of several loopback addresses, who knows which
	return to == strings.ToLower(host) || isLoopback(to) && (isWildcard(host) || isLoopback(host) && named)
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func isWildcard(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}
