package belfry_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
)

func TestSemantics(t *testing.T) {
	var zero belfry.Semantics[int, string]
	cancelled := fmt.Errorf("get: %w", context.Canceled)
	for _, c := range []struct {
		name string
		err  error
		want belfry.Outcome
	}{
		{"no error", nil, belfry.Outcome{Kind: belfry.Success}},
		{"an error", errBoom, belfry.Outcome{Kind: belfry.Failure, Retry: true}},
		{"deadline", context.DeadlineExceeded, belfry.Outcome{Kind: belfry.Failure, Retry: true}},
		{"the caller left", cancelled, belfry.Outcome{Kind: belfry.Ignored}},
		{"a refusal", &belfry.Rejection{Layer: "x", RetryAfter: time.Second}, belfry.Outcome{Kind: belfry.Ignored, RetryAfter: time.Second}},
	} {
		if got := zero.Judge("", c.err); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
	if req, ok := zero.Replay(5); req != 5 || !ok {
		t.Errorf("Replay: %d, %v", req, ok)
	}
	t.Run("done is called once, at the end of the call", func(t *testing.T) {
		var dones int
		done := func() { dones++ }
		zero.Finish("", nil, done)
		if dones != 1 {
			t.Errorf("no Until: %d", dones)
		}
		var end func()
		streaming := belfry.Semantics[int, string]{Until: func(res string, done func()) string { end = done; return res + "+" }}
		if res := streaming.Finish("r", nil, done); res != "r+" || dones != 1 {
			t.Errorf("stream open: %q, %d", res, dones)
		}
		end()
		streaming.Finish("", errBoom, done)
		if dones != 3 {
			t.Errorf("error: %d", dones)
		}
		panicking := belfry.Semantics[int, string]{Until: func(string, func()) string { panic("x") }}
		func() {
			defer func() { _ = recover() }()
			panicking.Finish("", nil, done)
		}()
		if dones != 4 {
			t.Errorf("panic in Until: %d", dones)
		}
	})
	t.Run("a response that Until panics about is ended", func(t *testing.T) {
		var log []string
		sem := belfry.Semantics[int, string]{
			Until:   func(string, func()) string { panic("x") },
			Discard: func(res string) { log = append(log, "discard "+res); panic("y") },
		}
		func() {
			defer func() { _ = recover() }()
			sem.Finish("r", nil, func() { log = append(log, "done") })
		}()
		if got := fmt.Sprint(log); got != "[discard r done]" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("an error has no response to discard", func(t *testing.T) {
		var dropped []string
		sem := belfry.Semantics[int, string]{Discard: func(s string) { dropped = append(dropped, s) }}
		sem.Drop("a", nil)
		sem.Drop("b", errBoom)
		if fmt.Sprint(dropped) != "[a]" {
			t.Errorf("got %v", dropped)
		}
	})
}
