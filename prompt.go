package belfry

// Stamp returns p with the time at which it was granted, at least 0, in whatever units the service that grants it counts time. That
// spares it a look at the clock when the call begins, if it begins at once: see [Permit.Stamped].
func (p Permit) Stamp(at int64) Permit {
	p.stamp = -at - 1
	return p
}

// Stamped returns the time of [Permit.Stamp], and whether it is still good for now: only for a Call of a permit that went through
// [Promptly]. A permit that was held meanwhile has no time.
func (p Permit) Stamped() (at int64, ok bool) { return p.stamp - 1, p.stamp > 0 }

// A Prompter is a service that tells whether its Call passes a permit on at once, or, being who stamps permits, begins at once. A layer is one if
// its Acquire returns the permit of the inner service as it is, its Call does nothing before that of the inner service which takes time, and
// the inner service is one too ([IsPrompt]). A service without the method is none.
type Prompter interface {
	// Prompt says always the same. as is the service that is asked: not the Prompter itself if a type has embedded it, whose
	// Call may be another, and then the answer is no.
	Prompt(as any) bool
}

// IsPrompt reports whether svc is a [Prompter] that says so.
func IsPrompt[Req, Res any](svc Service[Req, Res]) bool {
	p, ok := svc.(Prompter)
	return ok && p.Prompt(svc)
}

// Promptly returns permit, which svc has just granted, for a Call of svc that comes next, in the same goroutine and with nothing in between. [Do] and
// [TryDo] do so. Whoever holds permits, or does something before the call, does not: then the service looks at the clock itself.
func Promptly[Req, Res any](svc Service[Req, Res], permit Permit) Permit {
	if permit.stamp < 0 {
		return vouch(svc, permit)
	}
	return permit
}

func vouch[Req, Res any](svc Service[Req, Res], permit Permit) Permit {
	if IsPrompt(svc) {
		permit.stamp = -permit.stamp
	}
	return permit
}
