package admin

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// rebound reports whether r came over the loopback interface by a name that may be anybody's. A page from elsewhere whose own name
// is made to resolve to 127.0.0.1 would, to the browser, be of the same origin as this, and could read it. Such a name has a dot.
func rebound(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return false
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	_, err = netip.ParseAddr(host)
	return err != nil && strings.Contains(host, ".") && !strings.HasSuffix(host, ".localhost")
}
