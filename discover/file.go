package discover

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
)

// File returns the source of the addresses in the file at path. It reads the file every Config.Interval, until ctx ends, and
// compares what it says: neither a coarse clock nor a file that is replaced, itself or through a symbolic link on
// the way to it, can hide a change.
//
// The file has an address a line, where # begins a comment; or is a JSON list of strings. An address is a URL, or host and port
// with Config.Scheme put before them. It is brought into one spelling, so that an endpoint has one key however it is
// written: lower case, with a port, and without a slash at the end. After it may stand what the endpoint is chosen by:
//
//	http://10.0.0.1:8080 weight=2 zone=eu-1
//	http://10.0.9.1:8080 zone=eu-2 priority=1 host=rack7
//
// A file that cannot be read, or has a mistake in any line, changes nothing: the error names file and line. So
// does an empty file, unless Config.AllowEmpty is set. Replace a file by renaming a new one to it: one
// that is written in place may be read when half of it is there.
//
// It fails as [Config.Validate] does, and if path is empty. The file need not be there yet.
func File(ctx context.Context, path string, cfg Config) (iter.Seq2[Change, error], error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if path == "" {
		return nil, errors.New("discover: file: path must not be empty")
	}
	cfg = cfg.withDefaults(defaultFileInterval)
	look := func(context.Context) ([]Change, error) {
		data, err := read(path)
		if err != nil {
			return nil, err
		}
		return parseList(data, cfg.Scheme)
	}
	return poll(ctx, path, cfg, look), nil
}

const maxFile = 16 << 20

func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	if !info.Mode().IsRegular() { // reading a pipe would wait for its writer
		return nil, errors.New("is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, withoutPath(err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("is longer than %d MiB", maxFile>>20)
	}
	return data, nil
}

// withoutPath is what is wrong with a file, without its path: all errors of the source have that.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

// parseList returns the addresses in data. Its error begins with the line.
func parseList(data []byte, scheme string) ([]Change, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // some editors begin a file with it
	if isJSON(data) {
		return parseJSON(data, scheme)
	}
	return parseLines(data, scheme)
}

// isJSON tells a JSON list from a first line such as [::1]:8080.
func isJSON(data []byte) bool {
	data = bytes.TrimSpace(data)
	return len(data) > 0 && data[0] == '[' && !(len(data) > 1 && strings.ContainsRune("0123456789abcdefABCDEF:", rune(data[1])))
}

func parseLines(data []byte, scheme string) (found []Change, err error) {
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		c, err := parseEndpoint(scheme, line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %q: %w", n, line, err)
		}
		found = append(found, c)
	}
	return found, nil
}

func parseJSON(data []byte, scheme string) (found []Change, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	_, _ = d.Token() // the bracket that isJSON has seen
	for d.More() {
		at := lineAt(data, d.InputOffset())
		value, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", at, unexpected(err))
		}
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("line %d: must be a list of strings, got %v in it", at, value)
		}
		c, err := parseEndpoint(scheme, text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %q: %w", at, text, err)
		}
		found = append(found, c)
	}
	at := lineAt(data, d.InputOffset())
	if _, err := d.Token(); err != nil { // the other bracket
		return nil, fmt.Errorf("line %d: %w", at, unexpected(err))
	}
	at = lineAt(data, d.InputOffset())
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("line %d: there is something after the list", at)
	}
	return found, nil
}

// lineAt returns the line of what follows after offset.
func lineAt(data []byte, offset int64) int {
	rest := bytes.TrimLeft(data[offset:], " \t\r\n,")
	return 1 + bytes.Count(data[:len(data)-len(rest)], []byte("\n"))
}

// unexpected says what the end of the data means inside a list.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the list has no end")
	}
	return err
}
