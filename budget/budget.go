// Package budget bounds the extra attempts, retries and hedges, that a client makes, so that they cannot multiply an
// overload: they are paid for by successes, and by a small reserve for quiet times. One Budget serves all
// that makes extra attempts towards the same servers.
//
// In any [Config].TTL, the extra attempts are at most Ratio times the successes of the TTL before the last of them,
// plus Reserve times the TTL. Only successes pay: when everything fails, nothing is earned, and after the reserve is
// spent each request is sent once. Whoever is refused should pass its last answer on, marked as one not to be tried
// again.
//
// The idea and the default numbers are those of Finagle's RetryBudget, which came to Rust as tower's TpsBudget. In both,
// every request pays, and amounts are whole numbers; here amounts are real numbers, and how long a success counts
// does not depend on how often the budget is asked. Time is kept in twenty slots of a TTL, counted from its first use; a
// success counts for at least 95 % of a TTL and at most a whole one, an extra attempt for at least a whole one and
// at most 105 %. Every method takes constant time, however long nothing has happened.
package budget

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Config says how many extra attempts there may be.
type Config struct {
	// TTL is how long a success, and an extra attempt, are remembered: from a millisecond to an hour. 0 means 10 s.
	TTL time.Duration
	// Ratio is the number of extra attempts that one success pays for, at least 0. 0 means 0.2, unless NoRatio is set.
	Ratio float64
	// Reserve is the number of extra attempts per second that need no success, at least 0. They can be made at any time
	// within a TTL, also all at once. 0 means 10, unless NoReserve is set.
	Reserve float64
	// NoRatio says that successes pay for nothing: only the Reserve does. Ratio is 0 then.
	NoRatio bool
	// NoReserve says that each extra attempt needs its successes. Reserve is 0 then. With NoRatio too, there are no extra
	// attempts.
	NoReserve bool
}

const (
	defaultTTL     = 10 * time.Second
	defaultRatio   = 0.2
	defaultReserve = 10
)

// Validate says which field is out of range, and what the range is.
func (c Config) Validate() error {
	switch {
	case c.TTL != 0 && (c.TTL < time.Millisecond || c.TTL > time.Hour):
		return fmt.Errorf("budget: ttl must be within 1ms and 1h, got %v", c.TTL)
	case !(c.Ratio >= 0 && c.Ratio <= math.MaxFloat64): // so written, it refuses NaN too
		return fmt.Errorf("budget: ratio must be at least 0 and finite, got %v", c.Ratio)
	case !(c.Reserve >= 0 && c.Reserve <= math.MaxFloat64):
		return fmt.Errorf("budget: reserve must be at least 0 and finite, got %v", c.Reserve)
	case c.NoRatio && c.Ratio != 0:
		return fmt.Errorf("budget: ratio must be 0 with NoRatio, got %v", c.Ratio)
	case c.NoReserve && c.Reserve != 0:
		return fmt.Errorf("budget: reserve must be 0 with NoReserve, got %v", c.Reserve)
	}
	return nil
}

const (
	// slots is the number of slots in a TTL.
	slots = 20
	// rounding is what may be missing from 1: a hundred successes at 0.29 are worth 28.999999999999996.
	rounding = 1e-9
)

// A Budget counts successes and pays extra attempts from them. It is made by [New] or [Unlimited], is safe for
// concurrent use and must not be copied.
type Budget struct {
	ttl       time.Duration
	ratio     float64
	reserve   float64 // for a whole ttl
	unlimited bool

	// pending counts successes that are not in the ring yet, so that most need neither the clock nor mu. The invariant: while
	// it is open, whoever raises it to less than full has a success of slot counted thereby, and anybody else takes mu to
	// count his; only who holds mu sets it. slot does not change before pending is closed, so a success that is
	// late for a slot counts in an earlier one, and never for too long.
	pending atomic.Int64

	// mu guards all below. The invariant: successes and extras are the sums over ring, where slot s stands at s
	// modulo the length. Of slot s, successes count until slot s+slots begins, which is at most a ttl after any of
	// them; extras until slot s+slots+1 begins, more than a ttl after any of them. So no rounding ever favours an
	// extra attempt.
	mu        sync.Mutex
	began     bool
	start     time.Time
	slot      int64         // the current one, counted from start
	until     time.Duration // the age at which it ends
	ring      [slots + 1]slot
	successes int64
	extras    int64
	open      bool          // pending is
	armed     time.Duration // the until for which a timer is to close pending

	deposits, withdrawals, refused uint64 // since the beginning
}

type slot struct{ successes, extras int64 }

// New returns a budget. It panics with the error of cfg.Validate if there is one.
func New(cfg Config) *Budget {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	b := &Budget{
		ttl:   cfg.TTL,
		ratio: orDefault(cfg.Ratio, defaultRatio, cfg.NoRatio),
	}
	b.pending.Store(full)
	if b.ttl == 0 {
		b.ttl = defaultTTL
	}
	b.reserve = orDefault(cfg.Reserve, defaultReserve, cfg.NoReserve) * b.ttl.Seconds()
	return b
}

func orDefault(v, standard float64, none bool) float64 {
	if v == 0 && !none {
		return standard
	}
	return v
}

// Unlimited returns a budget that refuses nothing and only counts. With it, retries can multiply an overload by the
// number of attempts that a request may have.
func Unlimited() *Budget {
	b := &Budget{ttl: defaultTTL, unlimited: true}
	b.pending.Store(full)
	return b
}

// Deposit records a success now. The first in a slot sets a timer for the slot's end, which takes two allocations; the others cost
// one atomic addition. If the timer is late, those who come meanwhile, at most 255, count for less by as much.
func (b *Budget) Deposit() {
	if b.pending.Add(1) >= full {
		b.begin(clock())
	}
}

const (
	// full is the number of successes after which somebody looks at the clock, in case that the timer is late, or lost with the
	// bubble of a test.
	full = 256
	// shortest is the shortest slot that is worth a timer.
	shortest = time.Millisecond
)

// begin records a success at the time now, and opens pending for those that follow in the same slot.
func (b *Budget) begin(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	b.count(1)
	switch {
	case b.open:
		b.fold()
		return
	case b.ttl < slots*shortest:
		return
	}
	b.open = true
	b.pending.Store(0)
	if b.armed != b.until {
		b.armed = b.until
		time.AfterFunc(min(b.until-now.Sub(b.start), b.ttl/slots), b.expire)
	}
}

// expire makes the next success look at the clock.
func (b *Budget) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed = 0
	b.close()
}

// fold counts what is pending. mu is held.
func (b *Budget) fold() {
	if b.open {
		b.count(min(b.pending.Swap(0), full-1)) // from full on they count themselves
	}
}

// close counts what is pending, and nothing is after that. mu is held.
func (b *Budget) close() {
	if b.open {
		b.open = false
		b.count(min(b.pending.Swap(full), full-1))
	}
}

// count records n successes in the current slot. mu is held.
func (b *Budget) count(n int64) {
	b.here().successes += n
	b.successes += n
	b.deposits += uint64(n)
}

// DepositAt records a success at the time now. Time that runs backwards stands still: a now before the latest one that
// the budget was given counts as that one.
func (b *Budget) DepositAt(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	b.count(1)
}

// Withdraw pays for one extra attempt now, and reports whether that was possible.
func (b *Budget) Withdraw() bool { return b.WithdrawAt(clock()) }

// WithdrawAt pays for one extra attempt at the time now, and reports whether that was possible. Looking and taking
// are one step: of two callers at once, only one gets what is there for one. What was paid is not paid back, also if
// the attempt does not come about.
func (b *Budget) WithdrawAt(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	b.fold()
	if !b.unlimited && b.balance() < 1-rounding {
		b.refused++
		return false
	}
	b.here().extras++
	b.extras++
	b.withdrawals++
	return true
}

// Stats is a budget at one moment.
type Stats struct {
	// Balance is the number of extra attempts that would be paid for now, 0 for an unlimited budget.
	Balance float64
	// Unlimited says that the budget refuses nothing.
	Unlimited bool
	// Deposits, Withdrawals and Refused count since the budget was made: successes, extra attempts paid for, and
	// those refused.
	Deposits, Withdrawals, Refused uint64
}

// Stats returns what the budget has counted, and its balance now.
func (b *Budget) Stats() Stats { return b.StatsAt(clock()) }

// StatsAt returns what the budget has counted, and its balance at the time now.
func (b *Budget) StatsAt(now time.Time) Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	b.fold()
	return Stats{
		Balance:     max(0, b.balance()),
		Unlimited:   b.unlimited,
		Deposits:    b.deposits,
		Withdrawals: b.withdrawals,
		Refused:     b.refused,
	}
}

// balance returns what the current sums leave for extra attempts. It may be below 0: successes are forgotten a slot
// sooner than what they paid for.
func (b *Budget) balance() float64 {
	return b.ratio*float64(b.successes) + b.reserve - float64(b.extras)
}

func (b *Budget) here() *slot { return &b.ring[b.slot%int64(len(b.ring))] }

// advance makes the slot of now the current one, and forgets what has come of age since.
func (b *Budget) advance(now time.Time) {
	if !b.began {
		b.began, b.start = true, now
	}
	age := now.Sub(b.start)
	if age < b.until { // mostly, and then there is nothing to divide
		return
	}
	b.close()
	to := b.slotOf(age)
	for range min(to-b.slot, int64(len(b.ring))) { // a whole round forgets everything
		b.slot++
		b.extras -= b.here().extras
		*b.here() = slot{}
		b.successes -= b.ring[(b.slot+1)%int64(len(b.ring))].successes // the oldest slot's, which is the next to be overwritten
	}
	b.slot = max(b.slot, to)
	b.until = b.startOf(b.slot + 1)
}

// slotOf returns the number of the slot at age, exactly, also for a ttl that slots does not divide.
func (b *Budget) slotOf(age time.Duration) int64 {
	whole, rest := age/b.ttl, age%b.ttl
	return int64(whole*slots + rest*slots/b.ttl)
}

// startOf returns the first age of slot.
func (b *Budget) startOf(slot int64) time.Duration {
	whole, rest := time.Duration(slot/slots), time.Duration(slot%slots)
	return whole*b.ttl + (rest*b.ttl+slots-1)/slots
}

// clock is time.Now where only differences matter: the monotonic clock is read alone, which costs three quarters.
func clock() time.Time { return began.Add(time.Since(began)) }

var began = time.Now()
