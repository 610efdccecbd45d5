package hedge_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/hedge"
)

var errBoom = errors.New("boom")

// bubble runs f as a subtest in virtual time. It ends when all goroutines have, and fails if they do not.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// elapse lets virtual time pass, and happen what then does. Outside a bubble it panics.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

const ms = time.Millisecond

// after is a Config with a delay of 10 ms, and no budget to care about.
func after() hedge.Config {
	return hedge.Config{Delay: 10 * ms, Budget: budget.Unlimited()}
}

type answer struct {
	res string
	err error
}

// do sends req in the background, and returns when that waits or is through.
func do(ctx context.Context, svc belfry.Service[string, string], req string) <-chan answer {
	c := make(chan answer, 1)
	go func() {
		res, err := belfry.Do(ctx, svc, req)
		c <- answer{res, err}
	}()
	synctest.Wait()
	return c
}

// done returns what c brings once everything else is idle, and fails if that is nothing.
func done[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	synctest.Wait()
	select {
	case v := <-c:
		return v
	default:
		t.Fatal("not done, with everything else idle")
		panic("unreachable")
	}
}

// attempts is a service whose nth attempt is what the nth function does, the last one's ever after.
func attempts(list ...func(ctx context.Context) (string, error)) belfry.Service[string, string] {
	var n atomic.Int32
	return belfry.Of(func(ctx context.Context, _ string) (string, error) {
		return list[min(int(n.Add(1)), len(list))-1](ctx)
	})
}

// answers answers after d, unless its context ends.
func answers(d time.Duration, res string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		select {
		case <-time.After(d):
			return res, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// fails fails after d, unless its context ends.
func fails(d time.Duration, err error) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if _, ended := answers(d, "")(ctx); ended != nil {
			return "", ended
		}
		return "", err
	}
}

// A document is a streamed response.
type document struct {
	name   string
	broken bool
	ctx    context.Context // of the attempt that brought it
	done   func()
	closed atomic.Int32
}

// Close ends the document.
func (d *document) Close() {
	if d.closed.Add(1) == 1 && d.done != nil {
		d.done()
	}
}

// documents is what requests for documents mean: a broken one is a failure, requests that begin with "once" cannot be
// copied, and those that begin with "write" must not be carried out twice.
var documents = belfry.Semantics[string, *document]{
	Classify: func(res *document, err error) belfry.Outcome {
		if err == nil && res.broken {
			return belfry.Outcome{Kind: belfry.Failure}
		}
		return belfry.ClassifyError(err)
	},
	Copy:       func(req string) (string, bool) { return req, req != "once" },
	Idempotent: func(req string) bool { return req != "write" },
	Until:      func(res *document, done func()) *document { res.done = done; return res },
	Discard:    func(res *document) { res.Close() },
}

// A library is a service whose nth attempt takes the nth time, and brings the nth document. It does not notice that its
// context ends.
type library struct {
	takes []time.Duration
	docs  []*document
	n     atomic.Int32
}

func (l *library) service() belfry.Service[string, *document] {
	return belfry.Of(func(ctx context.Context, _ string) (*document, error) {
		i := int(l.n.Add(1)) - 1
		time.Sleep(l.takes[i])
		l.docs[i].ctx = ctx
		return l.docs[i], nil
	})
}

// A locked source is safe for concurrent use.
type locked struct {
	mu     sync.Mutex
	source rand.Source
}

func (l *locked) Uint64() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source.Uint64()
}
