package balance

// An Event is something that happened to an endpoint or to the source.
type Event struct {
	Kind EventKind
	// Key and Addr are the endpoint's; empty for what is about the source.
	Key, Addr string
	// Err says why, where that is a question.
	Err error
}

// An EventKind says what happened.
type EventKind uint8

const (
	// EndpointAdded is a new endpoint, or a known one at a new address.
	EndpointAdded EventKind = iota
	// EndpointDialled has its service.
	EndpointDialled
	// EndpointReady has granted its first permit, or its first after a failure.
	EndpointReady
	// EndpointFailed could not be dialled, or its Acquire failed; Err says why. It is tried again.
	EndpointFailed
	// EndpointClosed has a service that is closed for good.
	EndpointClosed
	// EndpointRemoved is no longer chosen. Its calls in flight go on.
	EndpointRemoved
	// ServiceClosed is the end of a removed endpoint whose service has a method Close; Err is what that returned.
	ServiceClosed
	// DiscoveryFailed is an error of the source; Err is it.
	DiscoveryFailed
)

// String returns the kind in words.
func (k EventKind) String() string {
	switch k {
	case EndpointAdded:
		return "endpoint added"
	case EndpointDialled:
		return "endpoint dialled"
	case EndpointReady:
		return "endpoint ready"
	case EndpointFailed:
		return "endpoint failed"
	case EndpointClosed:
		return "endpoint closed"
	case EndpointRemoved:
		return "endpoint removed"
	case ServiceClosed:
		return "service closed"
	case DiscoveryFailed:
		return "discovery failed"
	}
	return "unknown"
}

// emit tells the hook. It has nobody to panic in.
func (b *Balancer[Req, Res]) emit(e Event) {
	if b.cfg.OnEvent == nil {
		return
	}
	_ = guard(func() error {
		b.cfg.OnEvent(e)
		return nil
	})
}
