//go:build !race

package belfryhttp

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// What a stack adds to a request: nothing if it leaves the ResponseWriter alone. Of the deadline no number is documented;
// this keeps it from growing unnoticed.
func TestAllocsOfAServerStack(t *testing.T) {
	for name, most := range map[string]float64{"bare": 0, "stack": 0, "stack and timeout": 13} {
		h := serverStacks(t)[name]
		w, r := &sink{http.Header{}}, httptest.NewRequest("GET", "/", nil)
		if got := testing.AllocsPerRun(200, func() { h.ServeHTTP(w, r) }); got > most {
			t.Errorf("%s: %v allocations, want at most %v", name, got, most)
		}
	}
}
