package demo

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// An interrupt is what the user has said by Ctrl-C: once, send no more but wait for the answers; twice, wait for nothing.
type interrupt struct {
	stopped, aborted context.Context
	stop, abort      context.CancelFunc
}

func newInterrupt(ctx context.Context) *interrupt {
	i := &interrupt{}
	i.aborted, i.abort = context.WithCancel(ctx)
	i.stopped, i.stop = context.WithCancel(i.aborted)
	return i
}

// press is one Ctrl-C.
func (i *interrupt) press() {
	if i.stopped.Err() != nil {
		i.abort()
	}
	i.stop()
}

// onSignals presses for each SIGINT and SIGTERM, until the function that it returns is called.
func (i *interrupt) onSignals() (ignore func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	go func() {
		for {
			select {
			case <-signals:
				i.press()
			case <-over:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(over)
	}
}
