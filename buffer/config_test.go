package buffer_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/buffer"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		bound int
		cfg   buffer.Config
		want  string
	}{
		{1, buffer.Config{}, ""},
		{1, buffer.Config{Order: buffer.LIFO, MaxWait: 1}, ""},
		{1, buffer.Config{Order: buffer.CoDel}, ""},
		{1, buffer.Config{Order: buffer.CoDel, Target: 200, Interval: 200}, ""},
		{1, buffer.Config{Interval: 1}, ""}, // nobody uses it
		{0, buffer.Config{}, "buffer: bound must be at least 1, got 0"},
		{-1, buffer.Config{}, "buffer: bound must be at least 1, got -1"},
		{1, buffer.Config{Order: 3}, "buffer: order must be FIFO, LIFO or CoDel, got Order(3)"},
		{1, buffer.Config{MaxWait: -time.Second}, "buffer: max wait must be at least 0, got -1s"},
		{1, buffer.Config{Target: -time.Second}, "buffer: target must be at least 0, got -1s"},
		{1, buffer.Config{Interval: -time.Second}, "buffer: interval must be at least 0, got -1s"},
		{1, buffer.Config{Order: buffer.CoDel, Target: time.Second}, "buffer: target must not be above the interval of 100ms, got 1s"},
		{1, buffer.Config{Order: buffer.CoDel, Interval: 1}, "buffer: target must not be above the interval of 1ns, got 5ms"},
	} {
		got := ""
		if err := buffer.Validate(c.bound, c.cfg); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%d, %+v: got %q, want %q", c.bound, c.cfg, got, c.want)
		}
		for name, f := range map[string]func(){
			"New":   func() { buffer.New(belfry.Of(length), c.bound, c.cfg) },
			"Layer": func() { buffer.Layer[string, int](c.bound, c.cfg) },
		} {
			if got := panics(f); got != c.want {
				t.Errorf("%d, %+v: %s panics with %q, want %q", c.bound, c.cfg, name, got, c.want)
			}
		}
	}
}

// panics returns the text of the error that f panics with.
func panics(f func()) (text string) {
	defer func() {
		if err, ok := recover().(error); ok {
			text = err.Error()
		}
	}()
	f()
	return ""
}

func TestOrderString(t *testing.T) {
	for order, want := range map[buffer.Order]string{0: "FIFO", buffer.LIFO: "LIFO", buffer.CoDel: "CoDel", 9: "Order(9)"} {
		if got := order.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLayer(t *testing.T) {
	layer := buffer.Layer[string, int](1, buffer.Config{})
	one, two := layer(belfry.Of(length)), layer(belfry.Of(length))
	if _, err := one.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := belfry.TryDo(t.Context(), two, ""); err != nil {
		t.Errorf("two services share a room: %v", err)
	}
}
