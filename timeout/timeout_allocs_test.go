//go:build !race

package timeout_test

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/timeout"
)

func TestAllocs(t *testing.T) {
	soon, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	echo, streamed := belfry.Of(echo), kinds["streamed"]
	for _, c := range []struct {
		name string
		want float64
		ctx  context.Context
		svc  belfry.Service[string, string]
	}{
		{"a call", 1, t.Context(), timeout.New(echo, time.Minute, timeout.Config{})},
		{"a call under an earlier deadline", 0, soon, timeout.New(echo, 2*time.Hour, timeout.Config{})},
		{"a streamed call", 2, t.Context(), timeout.New(echo, time.Minute, timeout.Config{}, streamed)},
		{"a streamed call, bounded", 2, t.Context(), timeout.New(echo, time.Minute, timeout.Config{Stream: true}, streamed)},
		{"a wait and a call", 3, t.Context(), timeout.New(echo, time.Minute, timeout.Config{Wait: true})},
		{"a wait and a call under an earlier deadline", 1, soon, timeout.New(echo, 2*time.Hour, timeout.Config{Wait: true})},
	} {
		if n := testing.AllocsPerRun(200, func() { _, _ = belfry.Do(c.ctx, c.svc, "") }); n != c.want {
			t.Errorf("%s: %v allocations, want %v", c.name, n, c.want)
		}
	}
}
