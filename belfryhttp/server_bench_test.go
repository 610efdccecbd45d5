package belfryhttp

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// quickly is a handler that has nothing to do.
func quickly(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(done) }

var done = []byte("done")

// A sink is a ResponseWriter without a network.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }

// serverStacks are from nothing to all.
func serverStacks(tb testing.TB) map[string]http.Handler {
	stack := NewServerStack().LoadShed().Buffer(500).ConcurrencyLimit(50)
	return map[string]http.Handler{
		"bare":              http.HandlerFunc(quickly),
		"stack":             handlerOf(tb, stack, quickly),
		"stack and timeout": handlerOf(tb, stack.Timeout(2*time.Second), quickly),
		"TimeoutHandler":    http.TimeoutHandler(http.HandlerFunc(quickly), 2*time.Second, ""), // the standard library's, for comparison
	}
}

func BenchmarkServer(b *testing.B) {
	for name, h := range serverStacks(b) {
		b.Run(name, func(b *testing.B) {
			w, r := &sink{http.Header{}}, httptest.NewRequest("GET", "/", nil)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}

// With a network, for the proportion.
func BenchmarkServerOverSockets(b *testing.B) {
	for name, h := range serverStacks(b) {
		b.Run(name, func(b *testing.B) {
			server := httptest.NewServer(h)
			defer server.Close()
			b.ReportAllocs()
			for b.Loop() {
				res, err := server.Client().Get(server.URL)
				if err != nil {
					b.Fatal(err)
				}
				res.Body.Close()
			}
		})
	}
}
