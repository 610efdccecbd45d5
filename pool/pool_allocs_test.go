//go:build !race

package pool_test

import (
	"testing"

	"github.com/belfry-go/belfry"
)

func TestAllocsPool(t *testing.T) {
	ctx := t.Context()
	p := lengths(t)
	svc, keyed := p.Get("a"), p.Service(func(req string) string { return req })
	for name, f := range map[string]func(){
		"of one key":     func() { _, _ = belfry.Do(ctx, svc, "a") },
		"by the request": func() { _, _ = belfry.Do(ctx, keyed, "a") },
	} {
		f() // makes it
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}
