// Package limit bounds how much goes on at once.
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
package limit
