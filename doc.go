// Package belfry is about services that say whether they can take a request before they are given one.
//
// A [Service] has three methods: Acquire reserves room for a call, Call spends the reservation on a request, Release
// gives it back. Users write [Do], which acquires and calls; a plain function is a service by [Of]; a caller that wants
// room before it takes work off a queue writes [Reserve], and one with many requests [CallAll]. Layers wrap services in
// services: timeout, retry, limit, buffer, shed and others have a package each, and package stack puts them together.
// Package balance picks the better of two endpoints that are ready.
//
// The idea of readiness is that of Rust's tower. There it is state hidden in the service value, lost when the
// value is cloned, and it cannot be given back; here it is a [Permit] in the hand of one caller.
//
// # The contract
//
// What every service promises, and every caller and layer keeps. TestLayer of package belfrytest checks it.
//
//  1. A service is safe for concurrent use. It is shared, never cloned.
//
//  2. A successful Acquire is followed by exactly one Call or one Release, from any goroutine. Call spends the permit
//     whatever happens in it: an error, a panic, [runtime.Goexit], a cancelled context. A permit is good for any
//     request: Acquire may take the values of its context as hints only. A layer with nothing to remember passes the
//     inner permit through; one that must remember uses a pointer that it already has when the inner permit is zero,
//     else allocates. Permits are never pooled: one double Release would make two innocent callers share one. A layer
//     that wraps only sometimes checks that the wrapper is its own.
//
//  3. Acquire waits only for capacity. Under [NoWait] it never waits: what is free, and spoken for by no waiter, is
//     granted; else it fails with an error that Is [ErrNotReady]. It may also be refused while another Acquire is in
//     progress. A context that is done for another reason may be refused even if there is room. Becoming ready never
//     depends on a caller that stays: dialling, probing and refilling go on by themselves once asked for.
//
//  4. An Acquire that is cancelled, fails or panics leaves nothing reserved, at any depth. Outer layers reserve before
//     inner ones. Waiters are served first come, first served, unless the layer's documentation says otherwise.
//
//  5. Acquire's context bounds the wait, Call's the call. Late layers (filter, steer, buffer, and retry after its
//     first attempt) reserve the inner service inside Call, because they need the request, or a seat, first: their
//     documentation says "late" in its first paragraph, and readiness above them is theirs alone. They use
//     [AcquireLate], so that the extra attempt of a hedge never queues. Neither context is kept after the method has
//     returned, except by the losers of a hedge.
//
//  6. An error of Acquire is about now. Whoever tries again in a loop pauses for its [RetryAfter], or backs off. Only
//     [ErrClosed] is for ever.
//
//  7. A refusal, made when no attempt of this call has been sent by this layer or below it, matches [ErrRejected],
//     keeps its cause (the context's error too), and carries layer, in flight, limit and retry-after in a [Rejection].
//     Once anything was sent, the error of the last sent attempt is returned, and does not match ([Sent]). [Func] is a
//     border: a rejection that the function meets does not cross it.
//
//  8. No lock is held while calling the inner service, a callback or a method of a context, nor while waiting: a
//     goroutine blocked on a mutex would also stop the virtual time of testing/synctest. Goroutines that a layer
//     starts turn a panic of user code into an error or panic again in the caller; Goexit is not a success.
//
//  9. A layer adds no allocation to a successful call, except where its documentation says so.
//
// A layer holds its own place while it waits for the inner service, so a limit counts the waiters behind
// it; a Limiter that several stacks share belongs innermost, in one global order.
//
// # What a protocol means
//
// Which calls have failed, whether a request can be sent twice, and when a streamed response is over, only the protocol
// knows. It says so once, in a [Semantics] that all layers of a stack share. Package belfryhttp supplies the one of HTTP.
//
// # Costs
//
// [Do] over any depth of layers that pass the permit through allocates nothing; so do [NoWait], [TryDo], [Reserve] and
// the maps. [Around] allocates its [Next].
package belfry
