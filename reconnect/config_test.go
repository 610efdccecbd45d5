package reconnect_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/reconnect"
)

func TestValidate(t *testing.T) {
	for _, cfg := range []reconnect.Config{
		{},
		{MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond, Timeout: 1},
		{MinBackoff: time.Minute}, // above the default of MaxBackoff
	} {
		if err := cfg.Validate(); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	for want, cfg := range map[string]reconnect.Config{
		"timeout must not be negative, got -1ns":  {Timeout: -1},
		"back-off: min must be at least 1ms, got": {MinBackoff: 1},
		"back-off: max must be at least min":      {MinBackoff: time.Second, MaxBackoff: time.Millisecond},
		"back-off: max must be at least min (100": {MaxBackoff: -1},
	} {
		err := cfg.Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", cfg, err, want)
		}
		if v := panics(func() { reconnect.New(newTarget().dial, cfg) }); fmt.Sprint(v) != fmt.Sprint(err) {
			t.Errorf("New panics with %v, want %v", v, err)
		}
	}
	if v := panics(func() { reconnect.New[int, int](nil, reconnect.Config{}) }); fmt.Sprint(v) != "reconnect: make must not be nil" {
		t.Errorf("New(nil) panics with %v", v)
	}
	if v := panics(func() { reconnect.New(newTarget().dial, exact).Release(belfry.NewPermit(1)) }); v == nil {
		t.Error("a permit of something else is taken")
	}
}

func panics(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

func TestBroken(t *testing.T) {
	for _, err := range []error{
		io.EOF,
		fmt.Errorf("reading: %w", io.ErrUnexpectedEOF),
		&net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)},
		&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)},
		net.ErrClosed,
		io.ErrClosedPipe,
		syscall.ECONNABORTED,
		syscall.ECONNREFUSED,
	} {
		if !reconnect.Broken(err) {
			t.Errorf("%v is not broken", err)
		}
	}
	for _, err := range []error{nil, errRefused, context.DeadlineExceeded, context.Canceled, os.ErrDeadlineExceeded} {
		if reconnect.Broken(err) {
			t.Errorf("%v is broken", err)
		}
	}
}
