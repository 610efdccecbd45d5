package discover

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
)

// ErrEmpty is what the error of an answer matches that names no endpoint, where Config.AllowEmpty is not set.
var ErrEmpty = errors.New("no endpoints")

// poll returns the source over the sets that look returns, until ctx ends. name is for errors. What look returns is new each time; that
// there are no addresses it may also say by an error that matches ErrEmpty and has the reason.
func poll(ctx context.Context, name string, cfg Config, look func(ctx context.Context) ([]string, error)) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		var known fleet
		failures := 0
		for {
			addrs, err := look(ctx)
			if err == nil && len(addrs) == 0 {
				err = ErrEmpty
			}
			if cfg.AllowEmpty && errors.Is(err, ErrEmpty) {
				addrs, err = nil, nil
			}
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				failures++
				if !yield(Change{}, fmt.Errorf("discover: %s: %w", name, err)) {
					return
				}
			default:
				failures = 0
				if !known.become(addrs, yield) {
					return
				}
			}
			pause := cfg.pause()
			if failures > 0 {
				pause = cfg.backoff(failures)
			}
			if !wait(ctx, pause) {
				return
			}
		}
	}
}

// wait reports false if ctx ends first.
func wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// A fleet is the set that the reader knows.
type fleet struct {
	addrs []string // sorted, each once
	turn  int      // which one to name when nothing has changed
}

// become yields what makes the set that of addrs: the new ones first, then those that are gone. If there is no difference it
// names an endpoint again, each in its turn: only by yielding does it learn that nobody reads any more, and the reader
// that the last error is over. It reports whether to go on.
func (f *fleet) become(addrs []string, yield func(Change, error) bool) bool {
	slices.Sort(addrs)
	wanted := slices.Compact(addrs)
	before := f.addrs
	f.addrs = wanted
	if slices.Equal(before, wanted) {
		if len(wanted) == 0 {
			return true
		}
		f.turn = (f.turn + 1) % len(wanted)
		return yield(Insert(wanted[f.turn]), nil)
	}
	for _, addr := range wanted {
		if _, known := slices.BinarySearch(before, addr); !known && !yield(Insert(addr), nil) {
			return false
		}
	}
	for _, addr := range before {
		if _, stays := slices.BinarySearch(wanted, addr); !stays && !yield(Remove(addr), nil) {
			return false
		}
	}
	return true
}
