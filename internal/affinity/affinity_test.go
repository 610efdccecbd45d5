package affinity_test

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry/internal/affinity"
)

// asked notes what a context was asked for.
type asked struct {
	context.Context
	keys []any
}

func (a *asked) Value(key any) any {
	a.keys = append(a.keys, key)
	return a.Context.Value(key)
}

func TestKey(t *testing.T) {
	plain := t.Context()
	keyed := affinity.With(plain, "user 7")
	for _, c := range []struct {
		name string
		ctx  context.Context
		want string
		ok   bool
	}{
		{"none", plain, "", false},
		{"one", keyed, "user 7", true},
		{"the innermost counts", affinity.With(keyed, "user 8"), "user 8", true},
		{"the empty key is one", affinity.With(plain, ""), "", true},
		{"derived", context.WithoutCancel(keyed), "user 7", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := affinity.Of(c.ctx); got != c.want || ok != c.ok {
				t.Errorf("got %q, %v", got, ok)
			}
		})
	}
}

// A context that answers for the key itself knows it by IsKey.
func TestIsKey(t *testing.T) {
	spy := &asked{Context: affinity.With(t.Context(), "user 7")} // where there never was a key, nobody asks
	affinity.Of(spy)
	if len(spy.keys) != 1 || !affinity.IsKey(spy.keys[0]) {
		t.Errorf("asked for %v", spy.keys)
	}
	if affinity.IsKey("user 7") || affinity.IsKey(nil) {
		t.Error("something else is taken for the key")
	}
}

// What a call without a key pays, once there ever was one.
func BenchmarkOf(b *testing.B) {
	_ = affinity.With(b.Context(), "somebody's")
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := affinity.Of(ctx); ok {
			b.Fatal("a key")
		}
	}
}
