package proxy

import (
	"net/http/httputil"
	"net/netip"
	"strings"
)

// forwarders are the networks of those whose X-Forwarded fields are believed.
type forwarders []netip.Prefix

// trust reports whether the peer at addr, host and port, is one of them.
func (f forwarders) trust(addr string) bool {
	if len(f) == 0 {
		return false
	}
	peer, err := netip.ParseAddrPort(addr)
	if err != nil {
		return false
	}
	ip := peer.Addr().Unmap().WithZone("")
	for _, network := range f {
		if network.Contains(ip) {
			return true
		}
	}
	return false
}

// forward says in the outgoing request who the incoming one is from. From a forwarder that is trusted, X-Forwarded-For gets its
// address appended and the other X-Forwarded fields stay; of anybody else they are all dropped, and so is what else is read as a
// client's address, since everybody can write anything there. Dropped in either case are Forwarded (RFC 7239), for two fields that
// disagree are worse than one, and names with an underscore, which many servers take for the same as with a hyphen, and
// forwarders do not know.
func (f forwarders) forward(r *httputil.ProxyRequest) {
	trusted := f.trust(r.In.RemoteAddr)
	for name, values := range r.In.Header {
		switch {
		case !claims(name):
		case trusted && !strings.Contains(name, "_") && name != "Forwarded":
			r.Out.Header[name] = values
		default:
			delete(r.Out.Header, name)
		}
	}
	for name := range r.Out.Trailer {
		if claims(name) {
			delete(r.Out.Trailer, name)
		}
	}
	was := [2][]string{r.Out.Header["X-Forwarded-Host"], r.Out.Header["X-Forwarded-Proto"]}
	r.SetXForwarded()
	if trusted && len(was[0]) > 0 {
		r.Out.Header["X-Forwarded-Host"] = was[0]
	}
	if trusted && len(was[1]) > 0 {
		r.Out.Header["X-Forwarded-Proto"] = was[1]
	}
}

// claims reports whether a field says who a request is from, or is taken for one that does.
func claims(name string) bool {
	switch name = strings.ReplaceAll(strings.ToLower(name), "_", "-"); name {
	case "forwarded", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip", "cf-connecting-ip":
		return true
	}
	return strings.HasPrefix(name, "x-forwarded-")
}

// parseForwarder reads an address or a network. The latter is spelled with the address bits that count only.
func parseForwarder(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return netip.Prefix{}, err
		}
		ip = ip.Unmap().WithZone("")
		return netip.PrefixFrom(ip, ip.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, err
	}
	if ip := p.Addr(); ip.Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(ip.Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// ParseForwarders reads addresses and networks. Its error is a [Problem].
func ParseForwarders(texts []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for i, text := range texts {
		p, err := parseForwarder(text)
		if err != nil {
			return nil, &Problem{Key: "trusted_forwarders", Index: i, Text: "must be " + AcceptedForwarders + ", got " + text}
		}
		all = append(all, p)
	}
	return all, nil
}
