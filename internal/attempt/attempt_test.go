package attempt_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/belfry-go/belfry/internal/attempt"
)

func TestSet(t *testing.T) {
	var s attempt.Set
	endpoints := []*int{new(int), new(int), new(int), new(int)}
	for i, e := range endpoints {
		if s.Has(e) || s.Len() != i {
			t.Errorf("before Add %d: Has %v, Len %d", i, s.Has(e), s.Len())
		}
		s.Add(e)
		if !s.Has(e) {
			t.Errorf("after Add %d: not there", i)
		}
	}
	all := s.AppendTo([]any{0})
	for i, e := range endpoints {
		if !s.Has(e) || all[1+i] != e {
			t.Errorf("%d was lost, or is out of order", i)
		}
	}
	var none *attempt.Set
	if none.Has(endpoints[0]) || none.Len() != 0 {
		t.Error("no set holds something")
	}
}

func TestSetConcurrent(t *testing.T) {
	var s attempt.Set
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			e := new(int)
			s.Add(e)
			if !s.Has(e) || !slices.Contains(s.AppendTo(nil), any(e)) {
				t.Error("lost")
			}
		})
	}
	wg.Wait()
	if s.Len() != 8 {
		t.Errorf("Len %d, want 8", s.Len())
	}
}

func TestContext(t *testing.T) {
	type key struct{}
	outer := &attempt.Context{Context: context.WithValue(t.Context(), key{}, "v")}
	inner := &attempt.Context{Context: outer}
	if attempt.From(t.Context()) != nil {
		t.Error("a set out of nowhere")
	}
	if attempt.From(outer) != &outer.Set || attempt.From(inner) != &inner.Set {
		t.Error("the innermost set does not count")
	}
	if inner.Value(key{}) != "v" {
		t.Error("a value of the parent was lost")
	}
	hedged := attempt.Hedge(inner)
	if attempt.IsHedge(inner) || !attempt.IsHedge(hedged) || attempt.From(hedged) != &inner.Set || hedged.Err() != nil {
		t.Error("Hedge marks wrongly")
	}
}

func TestFinal(t *testing.T) {
	type key struct{}
	outer := &attempt.Context{Context: t.Context()}
	middle := &attempt.Context{Context: context.WithValue(outer, key{}, "v")}
	sibling := &attempt.Context{Context: outer}
	attempt.Finalize(t.Context())
	if outer.Final() || middle.Final() {
		t.Error("final before anybody said so")
	}
	attempt.Finalize(context.WithValue(middle, key{}, "w"))
	if !outer.Final() || !middle.Final() || sibling.Final() {
		t.Errorf("outer %v, middle %v, sibling %v, want true, true, false", outer.Final(), middle.Final(), sibling.Final())
	}
	outer.Begin()
	if outer.Final() || !middle.Final() {
		t.Error("Begin forgets more or less than its own attempt")
	}
}

func TestDetach(t *testing.T) {
	type key struct{}
	parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
	ctx := &attempt.Context{Context: parent}
	d := attempt.Detach(attempt.Hedge(ctx))
	cancel()
	attempt.Finalize(d)
	if attempt.From(d) != nil || attempt.IsHedge(d) || ctx.Final() {
		t.Error("it is still an attempt")
	}
	if d.Value(key{}) != "v" || d.Err() != nil || d.Done() != nil {
		t.Error("a value was lost, or the end was not")
	}
}

func Example() {
	ctx := &attempt.Context{Context: context.Background()}
	first, second := new(int), new(int)
	attempt.From(ctx).Add(first)
	fmt.Println(attempt.From(ctx).Has(first), attempt.From(ctx).Has(second))
	// Output: true false
}

// The first attempt of a request: the context, who is asked what was tried, and the endpoint that gets it.
func BenchmarkFirst(b *testing.B) {
	ctx, endpoint := context.Background(), new(int)
	b.ReportAllocs()
	for b.Loop() {
		c := &attempt.Context{Context: ctx}
		tried := attempt.From(c)
		if tried.Has(endpoint) {
			b.Fatal("tried before")
		}
		tried.Add(endpoint)
	}
}
