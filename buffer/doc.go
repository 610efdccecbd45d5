// Package buffer puts a bounded waiting room in front of a service. It is late: Acquire takes a seat in the room, which
// says nothing about the inner service; Call waits in the room until the inner service has a permit for it, and then
// calls.
//
// # Readiness
//
// A [Service] is ready while a seat is free. Whoever finds none waits for one, first come, first served. A permit holds a
// seat, and so does its call for as long as it waits; the seat is free as soon as the inner service has granted the call
// a permit. So bound 2 over a service that does one thing at a time means one call in progress and two in the room. Package
// shed in front of it refuses when the room is full, and only then.
//
// There is no worker goroutine. Calls in the room form a line, in the order in which they begin. The one whose turn it is
// waits inside the inner Acquire, the others for their turn; so a permit that gets free, wherever, serves the line.
//
// A call that finds nobody in line asks the inner service under [belfry.NoWait] first, which keeps no values of its
// context. If that grants a permit, the call goes ahead without having waited, and at no allocation; at one, if an
// endpoint was given the request before, in an earlier attempt. If it does not, the call gets in line, and acquires
// under a context with the values of its own. A wait costs about five allocations, seven if its length is
// bounded, and most of them when its turn comes: one timer of the room ends the waits of all who are in line or wait
// for a seat.
//
// # Who is next
//
// By [Config].Order the turn goes to the oldest in line (FIFO) or to the newest (LIFO). It is never taken away: a newer
// call overtakes those in line, but not the one that is inside the inner Acquire already. To cancel that Acquire for a
// newcomer would give up its place among others who wait for the inner service, and to hand its permit to a newcomer
// would serve one call by a wait that was made under the values and the deadline of another. The price is that after a
// standstill of the inner service one old call is served before the newest; MaxWait limits how old.
//
// CoDel controls how long calls wait, rather than how many. It is the variant for servers in Ben Maurer, "Fail at
// Scale" (ACM Queue 13(8), 2015), of Kathleen Nichols and Van Jacobson, "Controlling Queue Delay" (ACM Queue 10(5),
// 2012), together with the adaptive LIFO of the former. While the line was empty at some moment of the last Interval, a
// queue is only a burst: a call that gets in line may wait for Interval, and the oldest is next. When the line has not
// been empty for longer than that, the room is overloaded: a call that gets in line may wait for Target, and the newest
// is next, because it has the most of its time left. How long a call may wait is settled when it gets in line, who is
// next when the turn gets free.
//
// # Cancellation and errors
//
// A caller whose context ends, or who has waited for too long, leaves at once, wherever it is in the room. Its seat is
// free at once, and the turn, if it had it, is the next one's. The request of a caller who has left is not sent: a
// permit that comes at the same moment is given back.
//
// What this package refuses is a [belfry.Rejection], because nothing was sent. One that ends a wait keeps the error of
// the caller's context. A wait that was too long for MaxWait or CoDel is "queued too long" and matches
// [belfry.ErrNotReady], not [context.DeadlineExceeded]: the caller has time left, and there may be room elsewhere, or
// later.
//
// An Acquire of the inner service that fails or panics concerns the one call that it was made for; the next in line is
// served. Only [belfry.ErrClosed], which is for ever, closes the room, as [Service.Close] does.
//
// The extra attempt of a hedge does not queue. It is refused unless nobody is in line and the inner service is ready now.
package buffer
