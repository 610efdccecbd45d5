// Package config reads the configuration of a proxy from a YAML file.
//
// It takes what the file says literally: a key that is not known, a key that is there twice, a value of the wrong kind and one
// out of range are errors, each with its line and what is accepted. What the file does not say is as [proxy.Defaults] has it.
package config

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/belfry-go/belfry/cmd/belfry/internal/proxy"
)

// maxFile is how long a file may be. A list of targets that is longer belongs into a file of its own.
const maxFile = 1 << 20

// patience is how long reading a file may take, with all that it names. The parser has inputs for which it takes forever, and so have
// disks.
const patience = 10 * time.Second

// Load returns the configuration in the file at path, as Parse does, and reads the certificates and keys that it names. It takes no
// longer than 10 s.
func Load(path string) (proxy.Config, error) {
	return inTime(path, patience, func() (proxy.Config, error) { return load(path) })
}

// inTime returns what f does, unless that takes too long. Then f goes on, since nothing can end it.
func inTime(path string, most time.Duration, f func() (proxy.Config, error)) (proxy.Config, error) {
	type result struct {
		cfg proxy.Config
		err error
	}
	done := make(chan result, 1)
	go func() {
		cfg, err := f()
		done <- result{cfg, err}
	}()
	select {
	case r := <-done:
		return r.cfg, r.err
	case <-time.After(most):
		return proxy.Config{}, fmt.Errorf("%s: must be readable within %v, and is not", path, most)
	}
}

func load(path string) (proxy.Config, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return proxy.Config{}, withPath(path, err)
	case !info.Mode().IsRegular(): // reading a pipe would wait for its writer
		return proxy.Config{}, fmt.Errorf("%s: must be a file", path)
	case info.Size() > maxFile:
		return proxy.Config{}, fmt.Errorf("%s: must be no longer than 1 MiB, got %d bytes", path, info.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return proxy.Config{}, withPath(path, err)
	}
	return read(path, data, proxy.Check)
}

// withPath is err with the path once.
func withPath(path string, err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Parse returns the configuration in data, which is the content of the file that is called name. Its error joins all
// that is wrong, a line for each: name, line, key, and what is accepted.
func Parse(name string, data []byte) (proxy.Config, error) {
	return read(name, data, func(proxy.Config) []*proxy.Problem { return nil })
}

// read returns the configuration in data, if check of it finds nothing wrong either.
func read(name string, data []byte, check func(proxy.Config) []*proxy.Problem) (proxy.Config, error) {
	d := &document{name: name, cfg: proxy.Defaults(), lines: map[string]int{}}
	root, err := parse(data)
	if err != nil {
		return proxy.Config{}, fmt.Errorf("%s:%w", name, err)
	}
	if root != nil {
		d.mapping("", root, fields())
	}
	for _, problem := range d.cfg.Problems() {
		d.problem(problem)
	}
	if len(d.errs) == 0 {
		for _, problem := range check(d.cfg) {
			d.problem(problem)
		}
	}
	if len(d.errs) > 0 {
		slices.SortStableFunc(d.errs, func(a, b *Error) int { return a.Line - b.Line })
		var all []error
		for _, e := range d.errs {
			all = append(all, e)
		}
		return proxy.Config{}, errors.Join(all...)
	}
	return d.cfg, nil
}

// An Error is one mistake in a file.
type Error struct {
	File string
	// Line is where, 0 if it is about what is not there.
	Line int
	// Key is the full key, such as buffer.size; empty if it is about the whole.
	Key string
	// Text says what is accepted, and what there is.
	Text string
}

// Error returns file:line: key text.
func (e *Error) Error() string {
	at := e.File
	if e.Line > 0 {
		at += ":" + strconv.Itoa(e.Line)
	}
	if e.Key == "" {
		return at + ": " + e.Text
	}
	return at + ": " + e.Key + " " + e.Text
}

// A document is a file that is being read.
type document struct {
	name  string
	cfg   proxy.Config
	lines map[string]int // of keys, and of the values of lists
	errs  []*Error
}

func (d *document) refuse(line int, key, format string, args ...any) {
	d.errs = append(d.errs, &Error{File: d.name, Line: line, Key: key, Text: fmt.Sprintf(format, args...)})
}

// problem notes what the values were found to be wrong with, unless there is something wrong with the key already.
func (d *document) problem(p *proxy.Problem) {
	line := d.lines[p.Key]
	if at, ok := d.lines[p.Key+"["+strconv.Itoa(p.Index)+"]"]; ok {
		line = at
	}
	known := slices.ContainsFunc(d.errs, func(e *Error) bool {
		return e.Key == p.Key || strings.HasPrefix(p.Key, e.Key+".") || strings.HasPrefix(e.Key, p.Key+"[")
	})
	if !known {
		d.refuse(line, p.Key, "%s", p.Text)
	}
}

// A field is what a key means.
type field struct {
	accepted string
	set      func(cfg *proxy.Config, v value) error
	fields   map[string]field // of a mapping
	list     bool             // set is called for each value, in order
}

func fields() map[string]field {
	text := func(accepted string, at func(*proxy.Config) *string) field {
		return field{accepted: accepted, set: func(cfg *proxy.Config, v value) (err error) {
			*at(cfg), err = v.text()
			return err
		}}
	}
	number := func(accepted string, at func(*proxy.Config) *int) field {
		return field{accepted: accepted, set: func(cfg *proxy.Config, v value) (err error) {
			*at(cfg), err = v.integer()
			return err
		}}
	}
	bytes := func(accepted string, at func(*proxy.Config) *int64) field {
		return field{accepted: accepted, set: func(cfg *proxy.Config, v value) (err error) {
			*at(cfg), err = v.bytes()
			return err
		}}
	}
	duration := func(accepted string, at func(*proxy.Config) *time.Duration) field {
		return field{accepted: accepted, set: func(cfg *proxy.Config, v value) (err error) {
			*at(cfg), err = v.duration()
			return err
		}}
	}
	boolean := func(at func(*proxy.Config) *bool) field {
		return field{accepted: acceptedBool, set: func(cfg *proxy.Config, v value) (err error) {
			*at(cfg), err = v.boolean()
			return err
		}}
	}
	return map[string]field{
		"listen": text(proxy.AcceptedListen, func(c *proxy.Config) *string { return &c.Listen }),
		"admin": {accepted: proxy.AcceptedAdmin, set: func(cfg *proxy.Config, v value) (err error) {
			if v.is(off) {
				cfg.Admin = ""
				return nil
			}
			cfg.Admin, err = v.text()
			return err
		}},
		"tls": {fields: map[string]field{
			"cert": text(proxy.AcceptedFile, func(c *proxy.Config) *string { return &c.TLS.Cert }),
			"key":  text(proxy.AcceptedFile, func(c *proxy.Config) *string { return &c.TLS.Key }),
		}},
		"targets": {accepted: proxy.AcceptedTargets, list: true, set: func(cfg *proxy.Config, v value) error {
			target, err := v.target()
			cfg.Targets = append(cfg.Targets, target)
			return err
		}},
		"zone": text(proxy.AcceptedZone, func(c *proxy.Config) *string { return &c.Zone }),
		"sticky": {fields: map[string]field{
			"header": text(proxy.AcceptedSticky, func(c *proxy.Config) *string { return &c.Sticky.Header }),
			"cookie": text(proxy.AcceptedSticky, func(c *proxy.Config) *string { return &c.Sticky.Cookie }),
		}},
		"decisions":    number(proxy.AcceptedDecisions, func(c *proxy.Config) *int { return &c.Decisions }),
		"cost_bytes":   bytes(proxy.AcceptedCostBytes, func(c *proxy.Config) *int64 { return &c.CostBytes }),
		"warm":         number(proxy.AcceptedWarm, func(c *proxy.Config) *int { return &c.Warm }),
		"per_address":  number(proxy.AcceptedPerAddress, func(c *proxy.Config) *int { return &c.PerAddress }),
		"rotate_every": duration(proxy.AcceptedRotate, func(c *proxy.Config) *time.Duration { return &c.RotateEvery }),
		"target_tls": {fields: map[string]field{
			"ca":          text(proxy.AcceptedFile, func(c *proxy.Config) *string { return &c.TargetTLS.CA }),
			"server_name": text(proxy.AcceptedServerName, func(c *proxy.Config) *string { return &c.TargetTLS.ServerName }),
		}},
		"discovery_interval": duration(proxy.AcceptedInterval, func(c *proxy.Config) *time.Duration { return &c.DiscoveryInterval }),
		"subset": {fields: map[string]field{
			"size":     number(proxy.AcceptedPlaces, func(c *proxy.Config) *int { return &c.Subset.Size }),
			"identity": text(proxy.AcceptedIdentity, func(c *proxy.Config) *string { return &c.Subset.Identity }),
			"index":    number(proxy.AcceptedIndex, func(c *proxy.Config) *int { return &c.Subset.Index }),
			"count":    number(proxy.AcceptedRate, func(c *proxy.Config) *int { return &c.Subset.Count }),
		}},
		"load":       text(proxy.AcceptedLoad, func(c *proxy.Config) *string { return &c.Load }),
		"probe_path": text(proxy.AcceptedProbePath, func(c *proxy.Config) *string { return &c.ProbePath }),
		"health": {fields: map[string]field{
			"path":      text(proxy.AcceptedPath, func(c *proxy.Config) *string { return &c.Health.Path }),
			"interval":  duration(proxy.AcceptedInterval, func(c *proxy.Config) *time.Duration { return &c.Health.Interval }),
			"timeout":   duration(proxy.AcceptedTimeout, func(c *proxy.Config) *time.Duration { return &c.Health.Timeout }),
			"unhealthy": number(proxy.AcceptedInARow, func(c *proxy.Config) *int { return &c.Health.Unhealthy }),
			"healthy":   number(proxy.AcceptedInARow, func(c *proxy.Config) *int { return &c.Health.Healthy }),
		}},
		"breaker": {fields: map[string]field{
			"consecutive": number(proxy.AcceptedConsecutive, func(c *proxy.Config) *int { return &c.Breaker.Consecutive }),
			"ratio": {accepted: proxy.AcceptedFailureRatio, set: func(cfg *proxy.Config, v value) (err error) {
				cfg.Breaker.Ratio, err = v.number()
				return err
			}},
			"window":    duration(proxy.AcceptedInterval, func(c *proxy.Config) *time.Duration { return &c.Breaker.Window }),
			"min_calls": number(proxy.AcceptedPlaces, func(c *proxy.Config) *int { return &c.Breaker.MinCalls }),
			"min_pause": duration(proxy.AcceptedTimeout, func(c *proxy.Config) *time.Duration { return &c.Breaker.MinPause }),
			"max_pause": duration(proxy.AcceptedTimeout, func(c *proxy.Config) *time.Duration { return &c.Breaker.MaxPause }),
		}},
		"outlier": {fields: map[string]field{
			"gap": {accepted: proxy.AcceptedFailureRatio, set: func(cfg *proxy.Config, v value) (err error) {
				cfg.Outlier.Gap, err = v.number()
				return err
			}},
			"latency": {accepted: proxy.AcceptedTimesMedian, set: func(cfg *proxy.Config, v value) (err error) {
				cfg.Outlier.Latency, err = v.number()
				return err
			}},
			"interval":  duration(proxy.AcceptedInterval, func(c *proxy.Config) *time.Duration { return &c.Outlier.Interval }),
			"min_calls": number(proxy.AcceptedPlaces, func(c *proxy.Config) *int { return &c.Outlier.MinCalls }),
			"min_pause": duration(proxy.AcceptedTimeout, func(c *proxy.Config) *time.Duration { return &c.Outlier.MinPause }),
			"max_pause": duration(proxy.AcceptedTimeout, func(c *proxy.Config) *time.Duration { return &c.Outlier.MaxPause }),
		}},
		"eject": {fields: map[string]field{
			"max_share": {accepted: proxy.AcceptedShare, set: func(cfg *proxy.Config, v value) (err error) {
				cfg.Eject.MaxShare, err = v.number()
				return err
			}},
			"keep":        number(proxy.AcceptedKeep, func(c *proxy.Config) *int { return &c.Eject.Keep }),
			"retry_after": duration(proxy.AcceptedDrain, func(c *proxy.Config) *time.Duration { return &c.Eject.RetryAfter }),
		}},
		"rate": {fields: map[string]field{
			"per_second": number(proxy.AcceptedRate, func(c *proxy.Config) *int { return &c.Rate.PerSecond }),
			"burst":      number(proxy.AcceptedRate, func(c *proxy.Config) *int { return &c.Rate.Burst }),
		}},
		"shed": boolean(func(c *proxy.Config) *bool { return &c.Shed }),
		"buffer": {fields: map[string]field{
			"size": number(proxy.AcceptedPlaces, func(c *proxy.Config) *int { return &c.Buffer }),
			"wait": duration(proxy.AcceptedBufferWait, func(c *proxy.Config) *time.Duration { return &c.BufferWait }),
		}},
		"limit": number(proxy.AcceptedPlaces, func(c *proxy.Config) *int { return &c.Limit }),
		"endpoint_limit": {accepted: proxy.AcceptedEndpoint, set: func(cfg *proxy.Config, v value) (err error) {
			if cfg.AdaptiveEndpoints = v.is(proxy.Adaptive); cfg.AdaptiveEndpoints {
				return nil
			}
			cfg.EndpointLimit, err = v.integer()
			return err
		}},
		"timeout": duration(proxy.AcceptedTimeout, func(c *proxy.Config) *time.Duration { return &c.Timeout }),
		"retry": {fields: map[string]field{
			"attempts":        number(proxy.AcceptedAttempts, func(c *proxy.Config) *int { return &c.Attempts }),
			"attempt_timeout": duration(proxy.AcceptedAttempt, func(c *proxy.Config) *time.Duration { return &c.AttemptTimeout }),
			"budget": {accepted: proxy.AcceptedRetryRatio, set: func(cfg *proxy.Config, v value) (err error) {
				cfg.RetryRatio, err = v.number()
				return err
			}},
			"body_cap": bytes(proxy.AcceptedReplay, func(c *proxy.Config) *int64 { return &c.ReplayBytes }),
		}},
		"hedge": {fields: map[string]field{
			"delay": {accepted: proxy.AcceptedHedgeDelay, set: func(cfg *proxy.Config, v value) (err error) {
				if cfg.Hedge.Delay, err = v.duration(); err == nil && cfg.Hedge.Delay == 0 {
					err = errKind // 0 means in the Config that there is none
				}
				return err
			}},
			"percentile": {accepted: proxy.AcceptedPercentile, set: func(cfg *proxy.Config, v value) (err error) {
				if cfg.Hedge.Percentile, err = v.number(); err == nil && cfg.Hedge.Percentile == 0 {
					err = errKind
				}
				return err
			}},
			"max": number(proxy.AcceptedAttempts, func(c *proxy.Config) *int { return &c.Hedge.Max }),
		}},
		"client": {fields: map[string]field{
			"header_timeout": duration(proxy.AcceptedClientTimes, func(c *proxy.Config) *time.Duration { return &c.Client.HeaderTimeout }),
			"idle_timeout":   duration(proxy.AcceptedClientTimes, func(c *proxy.Config) *time.Duration { return &c.Client.IdleTimeout }),
			"stall_timeout":  duration(proxy.AcceptedClientTimes, func(c *proxy.Config) *time.Duration { return &c.Client.StallTimeout }),
			"header_bytes":   bytes(proxy.AcceptedHeaderBytes, func(c *proxy.Config) *int64 { return &c.Client.HeaderBytes }),
		}},
		"trusted_forwarders": {accepted: proxy.AcceptedForwarders, list: true, set: func(cfg *proxy.Config, v value) error {
			text, err := v.text()
			if err != nil {
				return err
			}
			var all []netip.Prefix
			if all, err = proxy.ParseForwarders([]string{text}); err != nil {
				return errKind
			}
			cfg.TrustedForwarders = append(cfg.TrustedForwarders, all...)
			return nil
		}},
		"log_level":  text(proxy.AcceptedLogLevel, func(c *proxy.Config) *string { return &c.LogLevel }),
		"access_log": boolean(func(c *proxy.Config) *bool { return &c.AccessLog }),
		"drain": {fields: map[string]field{
			"delay":   duration(proxy.AcceptedDrain, func(c *proxy.Config) *time.Duration { return &c.DrainDelay }),
			"timeout": duration(proxy.AcceptedDrain, func(c *proxy.Config) *time.Duration { return &c.Drain }),
		}},
	}
}

// mapping reads what n says about known.
func (d *document) mapping(prefix string, n *ast.MappingNode, known map[string]field) {
	for _, entry := range n.Values {
		name, line := keyOf(entry)
		key := prefix + name
		f, ok := known[name]
		first, twice := d.lines[key]
		switch {
		case !ok:
			d.refuse(line, prefix+printable(name), "is not known; %s", suggest(name, prefix, known))
		case twice:
			d.refuse(line, key, "is there twice, first in line %d", first)
		default:
			d.lines[key] = line
			d.field(key, line, entry.Value, f)
		}
	}
}

func (d *document) field(key string, line int, n ast.Node, f field) {
	switch {
	case f.fields != nil:
		if inner := mappingOf(n); inner != nil {
			d.mapping(key+".", inner, f.fields)
			return
		}
		d.refuse(line, key, "must be a mapping of %s, got %s%s", listOf(f.fields), value{n}, hint(value{n}.wrong()))
	case f.list:
		d.list(key, line, n, f)
	default:
		d.value(key, line, n, f)
	}
}

func (d *document) list(key string, line int, n ast.Node, f field) {
	sequence, ok := n.(*ast.SequenceNode)
	if !ok {
		d.refuse(line, key, "must be a list of %s, got %s%s", f.accepted, value{n}, hint(value{n}.wrong()))
		return
	}
	for i, item := range sequence.Values {
		at := key + "[" + strconv.Itoa(i) + "]"
		d.lines[at] = lineOf(item, line)
		d.value(at, d.lines[at], item, f)
	}
}

func (d *document) value(key string, line int, n ast.Node, f field) {
	if err := f.set(&d.cfg, value{n}); err != nil {
		d.refuse(line, key, "must be %s, got %s%s", f.accepted, value{n}, hint(err))
	}
}

// printable returns a key that nobody knows as it may be shown in a message.
func printable(key string) string {
	if strings.TrimLeft(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == "" && key != "" {
		return shorten(key)
	}
	return shorten(strconv.Quote(key))
}

// listOf returns the names of known, sorted.
func listOf(known map[string]field) string {
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// suggest says which key was meant, or which there are.
func suggest(name, prefix string, known map[string]field) string {
	best, distance := "", 3
	for other := range known {
		if n := edits(name, other); n < distance || n == distance && other < best {
			best, distance = other, n
		}
	}
	if best != "" {
		return "is it " + prefix + best + " that is meant?"
	}
	return "accepted: " + listOf(known)
}

// edits returns how many letters have to be put in, taken out or exchanged to make b of a (Levenshtein).
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
