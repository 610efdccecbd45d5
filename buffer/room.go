package buffer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/places"
	"github.com/belfry-go/belfry/internal/queue"
)

// A room is a number of seats, those who wait for one, and the line of calls that sit and wait for the inner service.
type room struct {
	bound   int
	order   Order
	maxWait time.Duration

	// busy is turn || closed != nil, for reading without mu.
	busy atomic.Bool

	// What is above every call reads, here and in its Service; what follows it writes.
	free    places.Count // seats; closed exactly while somebody waits for one, and for ever with the room, whenever mu is free
	counted [outcomes]atomic.Uint64

	// mu guards what follows, and is the mutex of free. Whenever it is free:
	//   - Nobody waits for a seat while there is a free one, but for the moment that who frees it takes to get mu.
	//   - Nobody is in line unless somebody has the turn: who is done with it hands it to the next in line, or nobody has it, in
	//     one step. Only who has it is in an Acquire of the inner service that may wait.
	//   - Every caller in the room has one seat, from sit to stand, wherever it is in line.
	//   - Each queue is in order of joining, and so of the end of patience, which is as long for all in it; and who is in
	//     hurried came after all in line. There is a timer exactly if one of them has a patience that ends, and it goes off
	//     at the first of the ends, or before.
	//   - Once closed is set, nobody waits for a seat or in line; who sets it then ends the wait of the one who has the turn.
	// A waiter that leaves in the moment in which it is handed something finds that in its hand: a seat it keeps, the
	// turn it passes on.
	mu      sync.Mutex
	seats   queue.Queue[ticket] // waits for a seat
	line    queue.Queue[ticket] // waits for the turn
	hurried queue.Queue[ticket] // waits for it behind line: who got in line when CoDel found the room overloaded
	timer   *time.Timer         // calls expire
	rings   ticket              // when it does
	turn    bool                // somebody has it
	cancel  func()              // ends the wait of the one who has the turn; nil if that does not wait
	codel   codel
	closed  *belfry.Rejection
}

// An outcome is what becomes of a caller.
type outcome uint8

const (
	failed    outcome = iota // the inner Acquire did not grant a permit, or did not return
	admitted                 // to the inner service
	rejected                 // could not, or must not, wait; or the room is closed
	cancelled                // by its own context
	expired                  // waited for too long
	released                 // gave its seat back unused: not counted
	outcomes
)

// sit takes a seat, waiting for it as long as ctx and MaxWait allow.
func (r *room) sit(ctx context.Context) error {
	if r.free.Take() {
		return nil
	}
	ended := ctx.Err() // not under the lock
	w, err := r.queueUp(ended)
	if w == nil {
		return err
	}
	select {
	case <-w.Handed():
		return r.seated(w)
	case <-ctx.Done():
		return r.turnAway(w, ctx.Err())
	}
}

// queueUp takes a seat if one is free by now, else waits for one, unless the context has ended. Without a waiter its
// error is the answer.
func (r *room) queueUp(ended error) (*queue.Waiter[ticket], error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settle()
	alone := r.seats.Len() == 0
	switch {
	case r.closed != nil:
		r.counted[rejected].Add(1)
		return nil, r.closed
	case ended != nil && alone && r.free.Claim(), ended == nil && alone && r.free.ClaimOrClose():
		return nil, nil
	case ended != nil:
		r.counted[rejected].Add(1)
		return nil, r.full(ended)
	}
	now := r.now()
	return r.join(&r.seats, until(now, r.maxWait), now), nil
}

// seated returns the answer to w, which was handed a seat or none.
func (r *room) seated(w *queue.Waiter[ticket]) error {
	if w.Value() == granted {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.Value() == refused {
		return r.closed
	}
	return r.leaving(expired, nil)
}

// turnAway ends w's wait for a seat for the reason ended, unless it was handed one, or none, at the same moment.
func (r *room) turnAway(w *queue.Waiter[ticket], ended error) error {
	r.mu.Lock()
	if !r.seats.Leave(w) {
		r.mu.Unlock()
		return r.seated(w)
	}
	defer r.mu.Unlock()
	r.settle()
	r.counted[cancelled].Add(1)
	return r.leaving(cancelled, ended)
}

// stand frees a seat, whose caller has met with outcome how.
func (r *room) stand(how outcome) {
	if how != released {
		r.counted[how].Add(1)
	}
	if r.free.Give() {
		r.handOn()
	}
}

func (r *room) handOn() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settle()
}

// settle hands the seats that are free to those who wait for one, the oldest first. mu is held.
func (r *room) settle() {
	for r.seats.Len() > 0 && r.free.Claim() {
		r.seats.HandOldest(granted)
	}
	if r.seats.Len() == 0 && r.closed == nil {
		r.free.Open()
	}
	r.rest()
}

// A place is one call's in line. It belongs to the goroutine of the call.
type place struct {
	w     *queue.Waiter[ticket] // nil if it had the turn at once
	line  *queue.Queue[ticket]  // where w waits
	until ticket                // the end of its patience, also inside the inner Acquire
}

// lineUp gets in line, or takes the turn if nobody has it. Its error says that the room is closed.
func (r *room) lineUp() (p place, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		return place{}, r.closed
	}
	var patience time.Duration
	now := r.now()
	p.line, patience = r.end(now)
	p.until = until(now, patience)
	if r.turn {
		p.w = r.join(p.line, p.until, now)
	} else {
		r.setTurn(true)
	}
	return p, nil
}

// end returns the queue for who gets in line at now, and how long all in it may wait; 0 means without bound. mu is held.
func (r *room) end(now time.Duration) (line *queue.Queue[ticket], patience time.Duration) {
	if r.order != CoDel {
		return &r.line, r.maxWait
	}
	line, patience = &r.line, r.codel.join(now)
	if r.codel.overloaded(now) {
		line = &r.hurried
	}
	if r.maxWait > 0 {
		patience = min(patience, r.maxWait)
	}
	return line, patience
}

// await waits until p has the turn, or it is over with its patience or ctx: then its error is the answer.
func (r *room) await(ctx context.Context, p *place) (outcome, error) {
	if p.w == nil {
		return admitted, nil
	}
	select {
	case <-p.w.Handed():
		if p.w.Value() == granted {
			return admitted, nil
		}
		if p.w.Value() == refused {
			return r.why(nil)
		}
	case <-ctx.Done():
	}
	return r.why(ctx.Err())
}

// interruptible lets cancel end the wait of the caller, who has the turn. Its error says that the room is closed.
func (r *room) interruptible(cancel func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		return r.closed
	}
	r.cancel = cancel
	return nil
}

// depart takes p out of line, and the turn, if p has it, to the next.
func (r *room) depart(p *place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.w == nil || !p.line.Leave(p.w) && p.w.Value() == granted {
		r.cancel = nil
		r.setTurn(r.next())
	}
	r.rest()
}

// setTurn says whether somebody has the turn. mu is held.
func (r *room) setTurn(somebody bool) {
	r.turn = somebody
	r.busy.Store(r.turn || r.closed != nil)
	if !somebody {
		r.codel.empty()
	}
}

// inLine returns how many wait for the turn. mu is held.
func (r *room) inLine() int { return r.line.Len() + r.hurried.Len() }

// next hands the turn to whose it is, and reports whether there is anybody. mu is held.
func (r *room) next() bool {
	if r.order == LIFO || r.order == CoDel && r.inLine() > 0 && r.codel.overloaded(r.now()) {
		return r.hurried.HandNewest(granted) || r.line.HandNewest(granted)
	}
	return r.line.HandOldest(granted) || r.hurried.HandOldest(granted)
}

// close answers all who wait, and all who will come, with a Rejection for reason and err, unless the room is closed
// already.
func (r *room) close(reason string, err error) {
	cancel := r.shut(reason, err)
	if cancel != nil {
		cancel()
	}
}

func (r *room) shut(reason string, err error) (cancel func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		return nil
	}
	r.settle()
	r.closed = r.refusal(reason, err)
	r.busy.Store(true)
	r.free.Close()
	for r.seats.HandOldest(refused) {
		r.counted[rejected].Add(1)
	}
	for r.line.HandOldest(refused) || r.hurried.HandOldest(refused) {
		continue
	}
	r.rest()
	return r.cancel
}

// why returns the answer to a call whose wait was ended: by its own context for the reason ended, else by a closed
// room, or because it was too long.
func (r *room) why(ended error) (outcome, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case ended != nil:
		return cancelled, r.leaving(cancelled, ended)
	case r.closed != nil:
		return rejected, r.closed
	}
	return expired, r.leaving(expired, nil)
}

// unqueued is the refusal of a call that must not queue.
func (r *room) unqueued() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		return r.closed
	}
	return r.refusal("a hedge does not queue", belfry.ErrNotReady)
}

// leaving is the refusal of somebody who has waited. mu is held.
func (r *room) leaving(how outcome, ended error) error {
	if how == expired {
		return r.refusal("queued too long", belfry.ErrNotReady)
	}
	return r.refusal("context done while waiting", ended)
}

// taken returns how many seats are.
func (r *room) taken() int { return min(r.bound, places.Most) - r.free.Free() }

// full is the refusal of somebody who could not wait. A seat that has become free since was not his. mu is held.
func (r *room) full(ended error) error {
	refusal := r.refusal("full", ended)
	refusal.InFlight = r.bound
	return refusal
}

// refusal counts taken seats as in flight: that is what the bound is about. mu is held.
func (r *room) refusal(reason string, err error) *belfry.Rejection {
	return &belfry.Rejection{Layer: "buffer", Reason: reason, InFlight: r.taken(), Limit: r.bound, Err: err}
}

func (r *room) stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settle()
	queued := r.inLine()
	if r.turn {
		queued++
	}
	return Stats{
		Bound:     r.bound,
		Seated:    r.taken(),
		Queued:    queued,
		Waiting:   r.seats.Len(),
		Admitted:  r.counted[admitted].Load(),
		Rejected:  r.counted[rejected].Load(),
		Cancelled: r.counted[cancelled].Load(),
		Expired:   r.counted[expired].Load(),
		Failed:    r.counted[failed].Load(),
		Closed:    r.closed != nil,
	}
}
