package balance

import "sync/atomic"

// A kick tells the driver of an endpoint that a place may have become free. One is remembered until the driver next pauses. The channel
// is there only while it does: most endpoints never have one.
type kick struct {
	at atomic.Pointer[chan struct{}] // where a driver waits; &kicked if none does and there was one
}

var kicked = make(chan struct{})

func (k *kick) give() {
	for {
		switch c := k.at.Load(); c {
		case &kicked:
			return
		case nil:
			if k.at.CompareAndSwap(nil, &kicked) {
				return
			}
		default:
			select {
			case *c <- struct{}{}:
			default: // one will do
			}
			return
		}
	}
}

// wait returns a channel on which there is something as soon as k was kicked, before or after. It is for one driver, until forget.
func (k *kick) wait() <-chan struct{} {
	c := make(chan struct{}, 1)
	if k.at.Swap(&c) == &kicked {
		select {
		case c <- struct{}{}:
		default: // by another
		}
	}
	return c
}

// forget ends the wait, before the endpoint is tried again: what was kicked meanwhile is no news then.
func (k *kick) forget() { k.at.Store(nil) }
