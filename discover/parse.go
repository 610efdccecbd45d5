package discover

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strings"
)

// Accepted says in words which targets [Parse] accepts.
const Accepted = "http://host[:port], https://host[:port], host:port, dns:///host:port, srv:///name or file:///path"

// Parse returns the source that targets describe, merged if there are several:
//
//	http://a:8080        one endpoint; also https://a, or a:8080 with Config.Scheme put before it
//	dns:///backend:8080  every address of the host, by [DNS]
//	srv:///_http._tcp.a  the hosts of SRV records, by [SRV]
//	file:///etc/targets  what a file lists, by [File]
//
// After a target may stand what its endpoints are chosen by, which counts more than what the source says of them:
//
//	https://a weight=3 zone=eu-1
//	dns:///backend:8080 zone=eu-2 priority=1
//
// Those of DNS, SRV and files may say which scheme their addresses have, instead of Config.Scheme, as in
// dns:///backend:8443?scheme=https. The sources look again until ctx ends.
//
// The error names the target, what is wrong with it, and what is accepted. There has to be a target.
func Parse(ctx context.Context, targets []string, cfg Config) (iter.Seq2[Change, error], error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("discover: there must be a target: %s", Accepted)
	}
	var fixed []Change
	var sources []iter.Seq2[Change, error]
	for _, target := range targets {
		endpoint, source, err := parse(ctx, target, cfg)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w; accepted are %s", err, Accepted)
		case source != nil:
			sources = append(sources, source)
		default:
			fixed = append(fixed, endpoint)
		}
	}
	if len(fixed) > 0 {
		sources = append(sources, all(fixed))
	}
	if len(sources) == 1 {
		return sources[0], nil
	}
	return Merge(sources...), nil
}

// all is the source of a fixed set.
func all(set []Change) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for _, c := range set {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// parse returns a source, or an endpoint.
func parse(ctx context.Context, target string, cfg Config) (Change, iter.Seq2[Change, error], error) {
	written := target
	refused := func(err error) (Change, iter.Seq2[Change, error], error) {
		return Change{}, nil, fmt.Errorf("discover: %q: %w", written, err)
	}
	target, given, err := splitAttributes(target)
	if err != nil {
		return refused(err)
	}
	scheme, _, found := strings.Cut(target, "://")
	scheme = strings.ToLower(scheme)
	kind, known := kinds[scheme]
	switch {
	case !found, scheme == "http", scheme == "https":
		addr, err := spell(cfg.Scheme, target)
		if err != nil {
			return refused(err)
		}
		return given.over(Insert(addr)), nil, nil
	case !known:
		return refused(fmt.Errorf("scheme %q is not known", scheme))
	}
	u, err := url.Parse(target)
	if err != nil {
		return refused(withoutURL(err))
	}
	if u.Host != "" || u.User != nil || u.Path == "" || u.Path == "/" {
		return refused(fmt.Errorf("%s:// must be followed by a slash and what to look for", scheme))
	}
	if err := options(u, &cfg); err != nil {
		return refused(err)
	}
	source, err := kind(ctx, u.Path, cfg)
	if err == nil && given != (attributes{}) {
		source = Map(source, func(c Change) (Change, bool) { return given.over(c), true })
	}
	return Change{}, source, err
}

var kinds = map[string]func(ctx context.Context, path string, cfg Config) (iter.Seq2[Change, error], error){
	"dns": func(ctx context.Context, path string, cfg Config) (iter.Seq2[Change, error], error) {
		return DNS(ctx, path[1:], cfg)
	},
	"srv": func(ctx context.Context, path string, cfg Config) (iter.Seq2[Change, error], error) {
		return SRV(ctx, path[1:], cfg)
	},
	"file": File,
}

// options reads what may follow a question mark.
func options(u *url.URL, cfg *Config) error {
	if u.Fragment != "" {
		return errors.New("a fragment means nothing here")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return err
	}
	for key, values := range query {
		if key != "scheme" || len(values) != 1 {
			return fmt.Errorf("the one option is scheme, once, got %s", u.RawQuery)
		}
		cfg.Scheme = values[0]
	}
	return nil
}
