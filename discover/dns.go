package discover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"slices"
	"strconv"
	"strings"
)

// DNS returns the source of the addresses that a host has, each with the port of hostport: for "backend:8080" and
// Config.Scheme "http" they are http://10.0.0.1:8080 and so on. It looks them up every Config.Interval, until ctx ends.
// The time to live of a record is not known to package net, and does not count.
//
// A host that does not exist has no addresses; what that means is up to Config.AllowEmpty. Under that, use a Resolver
// with StrictErrors, and a name that ends in a dot: of a name that is searched for in several domains, the
// Resolver otherwise may report what one of them does not know, rather than that another did not answer.
//
// A server at an https address has to have a certificate for the address, unless the transport's TLS
// configuration names another ServerName.
//
// It fails as [Config.Validate] does, and if hostport is not a host and a port.
func DNS(ctx context.Context, hostport string, cfg Config) (iter.Seq2[Change, error], error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	host, port, err := splitHostPort(hostport)
	if err != nil {
		return nil, fmt.Errorf("discover: dns:///%s: %w", hostport, err)
	}
	cfg = cfg.withDefaults(defaultInterval)
	look := func(ctx context.Context) ([]Change, error) {
		ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
		defer cancel()
		return lookUpHost(ctx, &cfg, host, port)
	}
	return poll(ctx, "dns:///"+net.JoinHostPort(host, port), cfg, look), nil
}

// lookUpHost looks each family up on its own: of both at once the Resolver reports what it has learned of one when the
// other failed, and the endpoints of the latter would seem to be gone.
func lookUpHost(ctx context.Context, cfg *Config, host, port string) (found []Change, err error) {
	none := ErrEmpty
	networks := []string{cfg.Network}
	if cfg.Network == "" || cfg.Network == "ip" {
		networks = []string{"ip4", "ip6"}
	}
	for _, network := range networks {
		ips, err := cfg.Resolver.LookupNetIP(ctx, network, host)
		if err != nil {
			if !notFound(err) {
				return nil, err
			}
			none = fmt.Errorf("%w: %w", ErrEmpty, err)
		}
		for _, ip := range ips {
			found = append(found, Insert(join(cfg.Scheme, ip.Unmap().String(), port)))
		}
		if len(found) > 0 && cfg.Network == "" {
			break
		}
	}
	if len(found) == 0 {
		return nil, none
	}
	return found, nil
}

// notFound reports whether err is an answer: that there are no such records, or addresses of the other family only.
func notFound(err error) bool {
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return e.IsNotFound
	}
	_, ok := errors.AsType[*net.AddrError](err)
	return ok
}

// SRV returns the source of the hosts and ports that the SRV records of name have (RFC 2782), such as
// "_http._tcp.example.com". It looks them up every Config.Interval, until ctx ends.
//
// An address has the host's name, not its addresses: those are looked up by whoever connects, and certificates are
// for the name. Weights are those of the records, where 0 beside others counts as 1. The records of the lowest priority number have
// [Change].Priority 0, those of the next 1 and so on: a balancer goes to the latter when the former are not enough.
//
// What [DNS] says about names that do not exist holds here too. A record whose host is "." says that there is no server.
//
// It fails as [Config.Validate] does, and if name is empty or has a port.
func SRV(ctx context.Context, name string, cfg Config) (iter.Seq2[Change, error], error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if _, err := spellName(name); err != nil {
		return nil, fmt.Errorf("discover: srv:///%s: must be the name of SRV records, such as _http._tcp.example.com: %w", name, err)
	}
	cfg = cfg.withDefaults(defaultInterval)
	look := func(ctx context.Context) ([]Change, error) {
		ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
		defer cancel()
		return lookUpService(ctx, &cfg, name)
	}
	return poll(ctx, "srv:///"+name, cfg, look), nil
}

func lookUpService(ctx context.Context, cfg *Config, name string) (found []Change, err error) {
	_, records, err := cfg.Resolver.LookupSRV(ctx, "", "", name)
	switch {
	case err != nil && notFound(err):
		return nil, fmt.Errorf("%w: %w", ErrEmpty, err)
	case err != nil:
		return nil, err
	}
	rank, last := -1, -1
	for _, r := range records { // the lowest priority first
		host := strings.TrimSuffix(strings.ToLower(r.Target), ".")
		switch {
		case host == "":
			continue
		case r.Port == 0:
			return nil, fmt.Errorf("the record of %s has port 0", host)
		case int(r.Priority) != last:
			rank, last = rank+1, int(r.Priority)
		}
		c := Insert(join(cfg.Scheme, host, strconv.Itoa(int(r.Port))))
		c.Weight, c.Priority = weightOf(records, r), rank
		found = append(found, c)
	}
	return heaviest(found), nil
}

// weightOf is the weight of r: 0 where all of its priority are alike, for then there is nothing to choose by.
func weightOf(records []*net.SRV, r *net.SRV) int {
	for _, other := range records {
		if other.Priority == r.Priority && other.Weight != r.Weight {
			return max(int(r.Weight), 1)
		}
	}
	return 0
}

// heaviest puts, of records of the same host, port and priority, the one of the highest weight first: the resolver draws their order, and
// the set must not change with it.
func heaviest(found []Change) []Change {
	slices.SortStableFunc(found, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(b.Weight, a.Weight))
	})
	return found
}
