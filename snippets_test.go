package belfry_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/belfryhttp"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/retry"
)

// What README.md and CONTRIBUTING.md show stands here between "snippet" and "end", where it is compiled, and some of
// it run. TestSnippets compares.

func newClient() (*http.Client, error) {
	// snippet
	replicas, err := belfryhttp.Balance(discover.List("http://a:8080", "http://b:8080", "http://c:8080"), balance.Config{})
	if err != nil {
		return nil, err
	}
	svc, err := belfryhttp.NewStack().
		LoadShed().
		Buffer(64).
		ConcurrencyLimit(500).
		Timeout(10 * time.Second).
		Retry(retry.Config{MaxAttempts: 3}).
		Build(replicas)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: belfryhttp.RoundTripper(svc)}
	// end
	return client, replicas.Close()
}

func newHandler(mux http.Handler) (http.Handler, error) {
	// snippet
	h, err := belfryhttp.NewServerStack().LoadShed().Buffer(500).ConcurrencyLimit(50).Timeout(2 * time.Second).Handler(mux)
	// end
	return h, err
}

type jobs struct{ list []int }

func (j *jobs) Pop() int {
	job := j.list[0]
	j.list = j.list[1:]
	return job
}

func work(ctx context.Context, svc belfry.Service[int, string], queue *jobs, done func(string)) error {
	// snippet
	r, err := belfry.Reserve(ctx, svc)
	if err != nil {
		return err
	}
	defer r.Release()
	res, err := r.Call(ctx, queue.Pop())
	// end
	done(res)
	return err
}

// snippet
func Logged[Req, Res any](inner belfry.Service[Req, Res], log *slog.Logger) belfry.Service[Req, Res] {
	return belfry.Around(inner, func(ctx context.Context, req Req, next *belfry.Next[Req, Res]) (Res, error) {
		start := time.Now()
		res, err := next.Call(ctx, req)
		log.DebugContext(ctx, "call", "took", time.Since(start), "err", err)
		return res, err
	})
}

// end

// snippet
// A Gate holds back the calls of the services under it while it is shut. The zero Gate is open.
type Gate struct {
	mu   sync.Mutex
	shut chan struct{} // nil while open; closed by Open
}

// Shut holds back new calls; those in flight go on.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
}

// Open lets all waiting calls go.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

func (g *Gate) waiting() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}

// Gated is inner behind a gate. Acquire waits while the gate is shut; callers that waited go on in any order.
// A permit is inner's own: the gate has nothing to remember, so it allocates nothing.
type Gated[Req, Res any] struct {
	inner belfry.Service[Req, Res]
	gate  *Gate
}

func (s *Gated[Req, Res]) Acquire(ctx context.Context) (belfry.Permit, error) {
	for shut := s.gate.waiting(); shut != nil; shut = s.gate.waiting() {
		select {
		case <-shut: // opened, or shut again by now
		case <-ctx.Done(): // at once under NoWait, whose error this then is
			return belfry.Permit{}, &belfry.Rejection{Layer: "gate", Reason: "shut", Err: ctx.Err()}
		}
	}
	return s.inner.Acquire(ctx)
}

func (s *Gated[Req, Res]) Call(ctx context.Context, permit belfry.Permit, req Req) (Res, error) {
	return s.inner.Call(ctx, permit, req)
}

func (s *Gated[Req, Res]) Release(permit belfry.Permit) { s.inner.Release(permit) }

// end

// snippet
func TestGateContract(t *testing.T) {
	belfrytest.TestLayer(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
		return &Gated[int, int]{inner: inner, gate: &Gate{}}, nil
	}, belfrytest.Reorders)
}

// end

func playBackend(t *testing.T) {
	// snippet
	backend, svc := belfrytest.NewBackend[string, string](t)
	backend.Allow(1)
	// end
	go func() { _, _ = belfry.Do(t.Context(), svc, "ding") }()
	backend.Expect("ding").Answer("dong")
}

// Each Go block of the documents is one of the snippets above, to the letter.
func TestSnippets(t *testing.T) {
	compiled := snippets(t, "snippets_test.go", "// snippet", "// end")
	for _, file := range []string{"README.md", "CONTRIBUTING.md"} {
		blocks := snippets(t, file, "```go", "```")
		if len(blocks) == 0 {
			t.Errorf("%s shows no code", file)
		}
		for _, block := range blocks {
			if !slices.Contains(compiled, block) {
				t.Errorf("%s: not compiled by snippets_test.go:\n%s", file, block)
			}
		}
	}
}

// snippets returns what stands in file between lines that are first and last, without common indentation.
func snippets(t *testing.T, file, first, last string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var block []string
	inside, indent := false, ""
	for line := range strings.Lines(string(text)) {
		switch trimmed := strings.TrimSpace(line); {
		case !inside && trimmed == first:
			inside, indent = true, line[:strings.Index(line, first)]
		case inside && trimmed == last:
			blocks = append(blocks, strings.TrimRight(strings.Join(block, ""), "\n"))
			inside, block = false, nil
		case inside:
			block = append(block, strings.TrimPrefix(line, indent))
		}
	}
	return blocks
}

func TestReadmeClient(t *testing.T) {
	client, err := newClient()
	if err != nil || client.Transport == nil {
		t.Errorf("%v, %v", client, err)
	}
}

func TestReadmeServer(t *testing.T) {
	h, err := newHandler(http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("got %d", w.Code)
	}
}

func TestReadmeReserve(t *testing.T) {
	queue := &jobs{list: []int{7}}
	full := newRoom(t, 0, echo)
	if err := work(belfry.NoWait(t.Context()), full, queue, nil); err == nil || len(queue.list) != 1 {
		t.Errorf("no room: %v, %d jobs left", err, len(queue.list))
	}
	var got string
	if err := work(t.Context(), newRoom(t, 1, echo), queue, func(s string) { got = s }); err != nil || got != "7" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestReadmeLogged(t *testing.T) {
	var text strings.Builder
	log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
	svc := Logged(belfry.Of(echo), log)
	if _, err := belfry.Do(t.Context(), svc, 1); err != nil || !strings.Contains(text.String(), "msg=call took=") {
		t.Errorf("%v, logged %q", err, &text)
	}
}

func TestReadmeBackend(t *testing.T) { playBackend(t) }

func TestGate(t *testing.T) {
	gate := &Gate{}
	svc := &Gated[int, string]{inner: belfry.Of(echo), gate: gate}
	gate.Shut()
	if _, err := belfry.TryDo(t.Context(), svc, 1); err == nil || err.Error() != "gate: shut: belfry: not ready" {
		t.Errorf("shut: %v", err)
	}
	gate.Open()
	if _, err := belfry.TryDo(t.Context(), svc, 1); err != nil {
		t.Errorf("open: %v", err)
	}
}
