// Package limit bounds how much goes on at once, and how often something begins.
//
// [Concurrency] lets at most so many calls of a service be in flight as its [Limiter] has places. It is ready when a
// place is free and the inner service is ready: Acquire takes a place first, waiting for it in a line that is served
// first come, first served, and then acquires the inner service; the place goes back if that fails. It has no bound of
// its own on the wait: a context, package timeout or package shed is one. A waiter whose context ends leaves the line
// at once, with nothing reserved. A call holds its place until it is over: until Call returns, or the Until of its
// Semantics says that the streamed response has ended; the end of the call's context alone frees nothing.
//
// A permit holds a place from Acquire on, also while the inner service keeps Acquire waiting. So a Limiter that several
// stacks share belongs innermost, in one global order: further out, callers who wait for one stack's servers would
// keep places from another's.
//
// # A limit that is found
//
// [Adaptive] is a Concurrency whose [AdaptiveLimiter] finds the number of places by itself. It begins small, learns how long calls take
// without a queue, and lets more go as long as they are not much slower; when they are, it lets fewer go, in proportion. This is the
// gradient of long and short latency of Netflix's concurrency-limits (Gradient2) and Envoy's adaptive concurrency. A latency under
// load that is taken for the normal one would let the limit drift upwards. So what is normal is decided by
// throughput, after Uber's Cinnamon, which looks at the covariance of calls in flight and throughput: where more calls in flight bring
// more answers, there is no queue, and slow calls are normal; where they bring none, the limit sinks slowly. To have something to
// compare, the limit is a fifth higher for some windows while it is what holds calls back. It is never lowered in order to measure, which
// would refuse calls for nothing, and it may go down to 1.
//
// In simulation (a hundred workers, then thirty, then a hundred again, calls of exponential length) at least 95 % of the answers that
// are possible came in time in each phase, and nothing was refused while the load was below what the server can take. It takes
// a few seconds to find a limit of a hundred, longer where calls are slow: a window has at least 50 calls, and is twice as long as they
// take. It cannot tell a server that is slow from a wait that does not depend on it: calls that wait in a buffer
// inside are taken for slow. Put it next to the server, one for each where they differ.
//
// # Rates
//
// [Rate] lets reservations be made at the rate of its [RateLimiter]: in any span of time, no more than the burst and what the
// span brings. There are no periods that begin anew, and so no double burst where two of them meet. It is ready when a
// token is there that no waiter is due to get, and the inner service is ready. Acquire takes a token first, waiting for it in a line
// that is served first come, first served, each when its token is due, and then acquires the inner service. Nobody holds
// a token in advance: when a waiter's context ends it leaves at once, and those behind it move up. With a burst of 1 the
// pause between two tokens is never shorter than the rate says, so that a timer's lateness is lost; any larger burst makes
// up for it.
//
// What is limited are reservations. A call may begin long after its Acquire, so calls that were reserved at the rate can
// begin together: permits that were held, or callers that had to wait for the inner service. Where calls themselves are to
// be spread, put the layer innermost and do not hold permits. A reservation that comes to nothing gives its token
// back: if the inner service refuses, unless the bucket has been full since, when time has replaced the token
// already; on Release, up to a burst in any span that a burst takes to come, since nobody remembers how old a permit is. A refusal
// is a [belfry.Rejection] of the layer "rate", and its RetryAfter is when a call may go that comes behind all who wait.
//
// [RatePerKey] is a rate for each key of a [KeyedLimiter]. It is late, for the request tells the key, and never queues.
//
// The algorithm is the generic cell rate algorithm (ITU-T I.371), on whole numbers.
package limit
