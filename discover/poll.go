package discover

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// ErrEmpty is what the error of an answer matches that names no endpoint, where Config.AllowEmpty is not set.
var ErrEmpty = errors.New("no endpoints")

// poll returns the source over the sets that look returns, until ctx ends. name is for errors. What look returns is new each time; that
// there are no addresses it may also say by an error that matches ErrEmpty and has the reason.
func poll(ctx context.Context, name string, cfg Config, look func(ctx context.Context) ([]Change, error)) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		var known fleet
		failures := 0
		for {
			found, err := look(ctx)
			if err == nil && len(found) == 0 {
				err = ErrEmpty
			}
			if cfg.AllowEmpty && errors.Is(err, ErrEmpty) {
				found, err = nil, nil
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
				if !known.become(found, yield) {
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
	members []Change // sorted by key, each once
	turn    int      // which one to name when nothing has changed
}

func byKey(a, b Change) int { return strings.Compare(a.Key, b.Key) }

// become yields what makes the set that of found: what is new or has changed first, then those that are gone. Of what is there twice the
// first counts. If there is no difference it names an endpoint again, each in its turn: only by yielding does it learn that nobody
// reads any more, and the reader that the last error is over. It reports whether to go on.
func (f *fleet) become(found []Change, yield func(Change, error) bool) bool {
	slices.SortStableFunc(found, byKey)
	wanted := slices.CompactFunc(found, func(a, b Change) bool { return a.Key == b.Key })
	before := f.members
	f.members = wanted
	if slices.Equal(before, wanted) {
		if len(wanted) == 0 {
			return true
		}
		f.turn = (f.turn + 1) % len(wanted)
		return yield(wanted[f.turn], nil)
	}
	for _, c := range wanted {
		if at, known := slices.BinarySearchFunc(before, c, byKey); (!known || before[at] != c) && !yield(c, nil) {
			return false
		}
	}
	for _, c := range before {
		if _, stays := slices.BinarySearchFunc(wanted, c, byKey); !stays && !yield(Remove(c.Key), nil) {
			return false
		}
	}
	return true
}
