package discover

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// spell returns an address in the one spelling that all spellings of an endpoint have in common, so that it has one key
// however it is written; or what is wrong with the address. Host and port get scheme put before them, if there is one.
func spell(scheme, addr string) (string, error) {
	if err := printable(addr); err != nil {
		return "", err
	}
	if !strings.Contains(addr, "://") {
		host, port, err := splitHostPort(addr)
		if err != nil {
			return "", err
		}
		return join(scheme, host, port), nil
	}
	u, err := url.Parse(addr)
	switch {
	case err != nil:
		return "", withoutURL(err)
	case u.Scheme != "http" && u.Scheme != "https":
		return addr, nil // whoever dials it knows what it means
	case u.User != nil:
		return "", errors.New("a user does not belong in an address")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(addr, "#"):
		return "", errors.New("a query or a fragment does not belong in an address")
	}
	if u.Host, err = spellHost(u); err != nil {
		return "", err
	}
	u.RawPath = strings.TrimRight(u.EscapedPath(), "/")
	u.Path, _ = url.PathUnescape(u.RawPath) // which was escaped just now
	return u.String(), nil
}

// spellHost returns host and port of u, with the port that its scheme implies.
func spellHost(u *url.URL) (string, error) {
	hostport := u.Host
	if u.Port() == "" && !strings.HasSuffix(hostport, ":") {
		hostport += map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	}
	host, port, err := splitHostPort(hostport)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, port), nil
}

// splitHostPort returns host and port in their one spelling.
func splitHostPort(hostport string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(hostport)
	if err != nil {
		if e, ok := errors.AsType[*net.AddrError](err); ok {
			err = errors.New(e.Err)
		}
		return "", "", fmt.Errorf("must be host:port: %w", err)
	}
	if host, err = spellName(host); err != nil {
		return "", "", err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", "", fmt.Errorf("port must be 1 to 65535, got %q", port)
	}
	return host, strconv.FormatUint(n, 10), nil
}

// spellName returns the one spelling of a host's name or IP address.
func spellName(host string) (string, error) {
	name := host
	ip, err := netip.ParseAddr(host)
	if err == nil {
		host, name = ip.Unmap().String(), ip.Zone()
	} else {
		host = strings.ToLower(host)
	}
	if host == "" {
		return "", errors.New("host must not be empty")
	}
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.", r) {
			return "", fmt.Errorf("host must not contain %q", r)
		}
	}
	return host, nil
}

func join(scheme, host, port string) string {
	hostport := net.JoinHostPort(host, port)
	if scheme == "" {
		return hostport
	}
	return (&url.URL{Scheme: strings.ToLower(scheme), Host: hostport}).String()
}

// printable refuses what cannot be part of any address, and would be hard to see in a message.
func printable(addr string) error {
	if addr == "" {
		return errors.New("address must not be empty")
	}
	for _, r := range addr {
		if r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return errors.New("address must not contain spaces or control characters")
		}
	}
	return nil
}

// withoutURL is what is wrong with a URL, without the URL itself: whoever reports it quotes that.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
