// Package buffer puts a bounded waiting room in front of a service. It is late: Acquire takes a seat in the room, which says
// nothing about the inner service; Call waits in the room until the inner service has a permit for it, and then calls.
//
// # Readiness
//
// A [Service] is ready while a seat is free. Whoever finds none waits for one, first come, first served. A seat is held by
// a permit, and by its call for as long as that waits; the seat is free at the moment in which the inner service has granted the call
// its permit. So bound 2 over a service that does one thing at a time means one call in progress and two in the room. Under a
// full room package shed refuses, and only then.
//
// There is no worker goroutine. Calls in the room form a line, in the order in which they begin, and the one whose turn it is waits
// inside the inner Acquire, the others for their turn; so any permit that gets free, wherever, serves the line. A call that finds nobody in line asks the inner service
// under [belfry.NoWait] first. If that grants a permit, the call goes ahead without having waited, and has cost no allocation (one if the
// request is an attempt of a retry or a hedge); a call that waits costs about ten.
//
// # Who is next
//
// By [Config].Order the turn goes to the oldest in line (FIFO) or to the newest (LIFO). It is never taken away: a newer call overtakes
// those in line, and not the one that is inside the inner Acquire already. Cancelling that Acquire for a newcomer would give up
// its place among the other waiters of the inner service, and a permit that one call has waited for under the values and the
// deadline of its context would go to another. The price is that after a standstill of the inner service one old call is served
// before the newest; MaxWait limits how old.
//
// CoDel controls how long calls wait rather than how many do. It is the variant for servers in Ben Maurer, "Fail at Scale" (ACM Queue 13(8),
// 2015), of Kathleen Nichols and Van Jacobson, "Controlling Queue Delay" (ACM Queue 10(5), 2012), together with the adaptive
// LIFO of the former. As long as the line was empty at some moment of the last Interval, a queue is only a burst: a call that
// gets in line may wait for Interval, and the oldest is next. When the line has not been empty for longer than that,
// the room is overloaded: a call that gets in line may wait for Target, and the newest is next, because it has the most of its
// time left. What a call may wait for is settled when it gets in line.
//
// # Cancellation and errors
//
// A caller whose context ends, or who has waited for too long, leaves at once, wherever it is in the room; its seat is free at once, and the
// turn, if it had it, is the next one's. A request whose caller is gone is never sent: if a permit comes at the same moment, it is
// given back. All errors of this package are a [belfry.Rejection], because nothing was sent; one that ends a wait keeps the error of the
// caller's context. A wait that was too long for MaxWait or CoDel is "queued too long" and matches [belfry.ErrNotReady]: not
// the caller's time is over, but there was no room in time, and there may be some elsewhere, or later.
//
// An Acquire of the inner service that fails or panics concerns the one call that it was made for; the next in line is served.
// The exception is [belfry.ErrClosed], which is for ever: it closes the room, as Close does.
//
// The extra attempt of a hedge does not queue. It is refused unless nobody is in line and the inner service is ready now.
package buffer
