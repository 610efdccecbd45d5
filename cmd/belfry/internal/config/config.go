// Package config reads the configuration of a proxy from a YAML file.
//
// It takes what the file says literally: a key that is not known, a key that is there twice, a value of the wrong kind and one
// out of range are errors, each with its line and what is accepted. What the file does not say is as [proxy.Defaults] has it.
package config

import (
	"errors"
	"fmt"
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
