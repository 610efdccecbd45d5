package belfryhttp

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// parseBase reads an endpoint's address.
func parseBase(addr string) (*url.URL, error) {
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	u, err := url.Parse(addr)
	switch {
	case err != nil:
		return nil, fmt.Errorf("belfryhttp: endpoint: %w", err)
	case u.Scheme != "http" && u.Scheme != "https":
		err = fmt.Errorf("scheme must be http or https, got %q", u.Scheme)
	case u.Hostname() == "":
		err = errors.New("host must not be empty")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		err = errors.New("only scheme, host and path may be given")
	}
	if err != nil {
		return nil, fmt.Errorf("belfryhttp: endpoint %q: %w", u.Redacted(), err)
	}
	return u, nil
}

// rewrite directs out to the endpoint at base.
func rewrite(out *http.Request, base *url.URL, preserveHost bool) {
	host := ""
	if preserveHost {
		if host = out.Host; host == "" && out.URL != nil {
			host = out.URL.Host
		}
	}
	out.Host = host
	out.URL = join(base, out.URL)
}

// join returns u on the server of base, below base's path. It changes neither.
func join(base, u *url.URL) *url.URL {
	if u == nil {
		u = &url.URL{}
	}
	joined := *u
	joined.Scheme, joined.Host = base.Scheme, base.Host
	if u.Opaque == "" && u.Path != "*" && strings.Trim(base.Path, "/") != "" {
		joined.Path, joined.RawPath = joinPath(base, u)
	}
	return &joined
}

// joinPath puts base's path before u's, with one slash between them and each escaped as it was. It cleans nothing: what "..", or "//"
// means is for the server to say.
func joinPath(base, u *url.URL) (path, raw string) {
	path = oneSlash(base.Path, u.Path)
	if raw = oneSlash(base.EscapedPath(), u.EscapedPath()); raw == (&url.URL{Path: path}).EscapedPath() {
		raw = ""
	}
	return path, raw
}

func oneSlash(a, b string) string {
	switch a = strings.TrimSuffix(a, "/"); {
	case b == "":
		return a
	case b[0] == '/':
		return a + b
	default:
		return a + "/" + b
	}
}
