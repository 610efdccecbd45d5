package discover

import (
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
)

// Merge returns the source of everything that sources say, each of which is read in a goroutine of its own. It ends when all
// have ended.
//
// A key that several sources name is one endpoint, which is removed when the last of them has removed it; a source that
// ends, or fails, has removed nothing. If they name different addresses or attributes, what was said last counts, and when
// that source removes its own, the endpoint moves back.
//
// When the reader has enough, a source is told so by its next change, as it would be without Merge; one that waits for
// long is stopped by its maker. A source that panics has ended, with a [PanicError].
func Merge(sources ...iter.Seq2[Change, error]) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		news, enough := make(chan item), make(chan struct{})
		defer close(enough)
		for i, source := range sources {
			go forward(i, source, news, enough)
		}
		named := claims{}
		for running := len(sources); running > 0; {
			it := <-news
			if it.ended {
				running--
			}
			switch {
			case it.err != nil:
				if !yield(it.change, it.err) {
					return
				}
			case !it.ended:
				if !yield(named.after(it.source, it.change), nil) {
					return
				}
			}
		}
	}
}

// An item is what a source has said, or that it has ended.
type item struct {
	source int
	change Change
	err    error
	ended  bool
}

// forward sends what a source says to news, until enough is closed. The end is sent as well, however it came about.
func forward(i int, source iter.Seq2[Change, error], news chan<- item, enough <-chan struct{}) {
	send := func(it item) bool {
		select {
		case news <- it:
			return true
		case <-enough:
			return false
		}
	}
	end := item{source: i, ended: true, err: errExited}
	defer func() {
		if v := recover(); v != nil {
			end.err = &PanicError{Value: v, Stack: debug.Stack()}
		}
		send(end)
	}()
	for change, err := range source {
		if !send(item{source: i, change: change, err: err}) {
			break
		}
	}
	end.err = nil
}

// claims are the endpoints that are there, by key, with who says so where, the latest last.
type claims map[string][]claim

type claim struct {
	source int
	change Change
}

// after notes a change of one source and returns what it means to all.
func (c claims) after(source int, change Change) Change {
	key := change.ID()
	change.Key = key
	held := c[key]
	i := slices.IndexFunc(held, func(h claim) bool { return h.source == source })
	if i >= 0 && (change.Remove || held[i].change != change) {
		held, i = slices.Delete(held, i, i+1), -1
	}
	if i < 0 && !change.Remove {
		held = append(held, claim{source, change})
	}
	if len(held) == 0 {
		delete(c, key)
		return Remove(key)
	}
	c[key] = held
	return held[len(held)-1].change
}

// A PanicError is the panic of a source that [Merge] reads.
type PanicError struct {
	// Value is what it panicked with.
	Value any
	// Stack is where.
	Stack []byte
}

// Error says what the source panicked with.
func (p *PanicError) Error() string { return fmt.Sprintf("discover: a source panicked: %v", p.Value) }

// Unwrap returns the value if it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

var errExited = errors.New("discover: a source was ended by runtime.Goexit")
