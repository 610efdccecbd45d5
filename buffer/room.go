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
	//   - Once closed is set, nobody waits for a seat or in line; who sets it then ends the wait of the one who has the turn.
	// A waiter that leaves in the moment in which it is handed something finds that in its hand: a seat it keeps, the
	// turn it passes on.
	mu     sync.Mutex
	seats  queue.Queue[*belfry.Rejection] // waits for a seat: nil is one, else the answer is that
	line   queue.Queue[*belfry.Rejection] // waits for the turn: nil is it, else the answer is that
	turn   bool                           // somebody has it
	cancel func()                         // ends the wait of the one who has the turn; nil if that does not wait
	codel  codel
	closed *belfry.Rejection // a pointer is handed at less memory than an error
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
	var expire <-chan time.Time
	if r.maxWait > 0 {
		timer := time.NewTimer(r.maxWait)
		defer timer.Stop()
		expire = timer.C
	}
	select {
	case <-w.Handed():
		return orNone(w.Value())
	case <-ctx.Done():
		return r.turnAway(w, cancelled, ctx.Err())
	case <-expire:
		return r.turnAway(w, expired, nil)
	}
}

// queueUp takes a seat if one is free by now, else waits for one, unless the context has ended. Without a waiter its
// error is the answer.
func (r *room) queueUp(ended error) (*queue.Waiter[*belfry.Rejection], error) {
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
	return r.seats.Join(nil), nil
}

// turnAway ends w's wait for a seat, unless it was handed one, or an answer, at the same moment.
func (r *room) turnAway(w *queue.Waiter[*belfry.Rejection], how outcome, ended error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.seats.Leave(w) {
		return orNone(w.Value())
	}
	r.settle()
	r.counted[how].Add(1)
	return r.leaving(how, ended)
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
		r.seats.HandOldest(nil)
	}
	if r.seats.Len() == 0 && r.closed == nil {
		r.free.Open()
	}
}

// A place is one call's in line. It belongs to the goroutine of the call.
type place struct {
	w    *queue.Waiter[*belfry.Rejection] // nil if it had the turn at once
	turn bool
}

// lineUp gets in line, for patience at most; 0 means without bound. It takes the turn if nobody has it.
func (r *room) lineUp() (p place, patience time.Duration, err error) {
	var now time.Time
	if r.order == CoDel {
		now = time.Now()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		return place{}, 0, r.closed
	}
	patience = r.maxWait
	if r.order == CoDel {
		if d := r.codel.join(now); patience == 0 || d < patience {
			patience = d
		}
	}
	if r.turn {
		p.w = r.line.Join(nil)
	} else {
		p.turn = true
		r.setTurn(true)
	}
	return p, patience, nil
}

// await waits until p has the turn or ctx is done; then p may have it or not. Its error says that the room is closed.
func (r *room) await(ctx context.Context, p *place) error {
	if p.w == nil {
		return nil
	}
	select {
	case <-p.w.Handed():
		answer := p.w.Value()
		p.w, p.turn = nil, answer == nil
		return orNone(answer)
	case <-ctx.Done():
		return nil
	}
}

// interruptible lets cancel end the wait of p, if that has the turn. Its error says that the room is closed.
func (r *room) interruptible(p *place, cancel func()) error {
	if !p.turn {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel = cancel
	return orNone(r.closed)
}

// orNone returns answer as an error.
func orNone(answer *belfry.Rejection) error {
	if answer == nil {
		return nil
	}
	return answer
}

// depart takes p out of line, and the turn, if p has it, to the next.
func (r *room) depart(p *place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.w != nil && !r.line.Leave(p.w) {
		p.turn = p.w.Value() == nil
	}
	if !p.turn {
		return
	}
	r.cancel = nil
	r.setTurn(r.next())
}

// setTurn says whether somebody has the turn. mu is held.
func (r *room) setTurn(somebody bool) {
	r.turn = somebody
	r.busy.Store(r.turn || r.closed != nil)
	if !somebody {
		r.codel.empty()
	}
}

// next hands the turn to whose it is, and reports whether there is anybody. mu is held.
func (r *room) next() bool {
	if r.order == LIFO || r.order == CoDel && r.line.Len() > 0 && r.codel.overloaded(time.Now()) {
		return r.line.HandNewest(nil)
	}
	return r.line.HandOldest(nil)
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
	for r.seats.HandOldest(r.closed) {
		r.counted[rejected].Add(1)
	}
	for r.line.HandOldest(r.closed) {
	}
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
	queued := r.line.Len()
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
