package limit

import (
	"container/heap"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/gcra"
)

// A KeyedConfig says what a rate per key does not say by itself. Its zero value is sensible.
type KeyedConfig struct {
	// Burst is how many calls of one key may go at once after a quiet time, 1 to 1000000. 0 means as many as the rate
	// lets go in one period.
	Burst int
	// MaxKeys is how many keys there may be whose burst is not whole, 1 to 100000000: so many are remembered. 0 means
	// 65536.
	MaxKeys int
	// OnReject is told of each call that is refused, with the error that it gets. See [Config]. Nil means nobody.
	OnReject func(err error)
}

const (
	defaultMaxKeys = 65536
	maxMaxKeys     = 100_000_000
)

// ValidateKeyed says whether the calls of each key may go at the rate of n in each period per: as [ValidateRate] does, and
// whether the number of keys is in its range.
func ValidateKeyed(n int, per time.Duration, cfg KeyedConfig) error {
	if cfg.MaxKeys < 0 || cfg.MaxKeys > maxMaxKeys {
		return fmt.Errorf("limit: max keys must be 1 to %d, or 0 for %d, got %d", maxMaxKeys, defaultMaxKeys, cfg.MaxKeys)
	}
	return ValidateRate(n, per, RateConfig{Burst: cfg.Burst})
}

// A KeyedLimiter is a rate for each key. It may be shared by services of different types. It is made by [NewKeyedLimiter] and
// safe for concurrent use.
//
// It remembers a key for as long as its burst is not whole, and then some. When it remembers MaxKeys, a new one takes the
// place of one whose burst is whole, which loses nothing by that. If there is none, calls of keys that it does not know are
// refused until there is one: to forget another key would give it a burst that it has not waited for.
type KeyedLimiter[K comparable] struct {
	cfg  KeyedConfig
	rate gcra.Rate

	mu                 sync.Mutex // guards what follows
	keys               map[K]*keyed[K]
	line               byFull[K] // all of keys, the one that is full first in front
	admitted, refunded uint64
	rejected, crowded  uint64
}

// A keyed is the bucket of a key.
type keyed[K comparable] struct {
	key    K
	bucket gcra.Bucket
	at     int // in the line
}

// NewKeyedLimiter returns a KeyedLimiter of n calls of each key in each period per. It panics with the error of
// [ValidateKeyed] if there is one.
func NewKeyedLimiter[K comparable](n int, per time.Duration, cfg KeyedConfig) *KeyedLimiter[K] {
	if err := ValidateKeyed(n, per, cfg); err != nil {
		panic(err)
	}
	if cfg.MaxKeys == 0 {
		cfg.MaxKeys = defaultMaxKeys
	}
	return &KeyedLimiter[K]{cfg: cfg, rate: RateConfig{Burst: cfg.Burst}.rate(n, per), keys: map[K]*keyed[K]{}}
}

// KeyedStats is what a KeyedLimiter has counted, at one moment.
type KeyedStats struct {
	// Burst is how many calls of a key may go at once.
	Burst int
	// Keys is the number of keys that are remembered, of MaxKeys.
	Keys, MaxKeys int
	// Admitted counts the tokens that were taken.
	Admitted uint64
	// Refunded counts those among them that came back, for the inner service had no room.
	Refunded uint64
	// Rejected counts the calls whose key had none.
	Rejected uint64
	// Crowded counts the calls that were refused because there were too many keys.
	Crowded uint64
}

// Stats returns what the KeyedLimiter has counted.
func (l *KeyedLimiter[K]) Stats() KeyedStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return KeyedStats{
		Burst: l.rate.Burst(), Keys: len(l.keys), MaxKeys: l.cfg.MaxKeys,
		Admitted: l.admitted, Refunded: l.refunded, Rejected: l.rejected, Crowded: l.crowded,
	}
}

// take takes a token of key, and returns the period that it belongs to. Its error is a Rejection.
func (l *KeyedLimiter[K]) take(key K, now time.Duration) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, ok := l.keys[key]
	if !ok {
		l.forget(now)
		if len(l.keys) >= l.cfg.MaxKeys {
			l.crowded++
			return 0, refusalByKey("too many keys", l.line[0].bucket.FullAt()-now)
		}
		k = &keyed[K]{key: key, bucket: gcra.Full()}
		l.keys[key] = k
		heap.Push(&l.line, k)
	}
	if !l.rate.Take(&k.bucket, now) {
		l.rejected++
		return 0, refusalByKey("too many for the key", l.rate.Wait(&k.bucket, now, 0))
	}
	heap.Fix(&l.line, k.at)
	l.admitted++
	return k.bucket.Period(), nil
}

func refusalByKey(reason string, after time.Duration) error {
	return &belfry.Rejection{Layer: "rate", Reason: reason, RetryAfter: after, Err: belfry.ErrNotReady}
}

// forget forgets keys whose burst is whole: two for one that comes, so that what is remembered from busier times gets
// less. mu is held.
func (l *KeyedLimiter[K]) forget(now time.Duration) {
	for range 2 {
		if len(l.line) == 0 || !l.line[0].bucket.IsFull(now) {
			return
		}
		delete(l.keys, heap.Pop(&l.line).(*keyed[K]).key)
	}
}

// refund gives a token of the period back. A key that was forgotten since had all of its own.
func (l *KeyedLimiter[K]) refund(key K, period uint64) {
	now := clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if k, ok := l.keys[key]; ok && l.rate.Refund(&k.bucket, now, period) {
		heap.Fix(&l.line, k.at)
		l.refunded++
	}
}

// A byFull is a heap by the moment at which buckets are full.
type byFull[K comparable] []*keyed[K]

func (h byFull[K]) Len() int           { return len(h) }
func (h byFull[K]) Less(i, j int) bool { return h[i].bucket.FullAt() < h[j].bucket.FullAt() }
func (h byFull[K]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *byFull[K]) Push(x any) {
	k := x.(*keyed[K])
	k.at = len(*h)
	*h = append(*h, k)
}

func (h *byFull[K]) Pop() any {
	last := len(*h) - 1
	k := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return k
}

var (
	errNoKeyedLimiter = errors.New("limit: keyed limiter must not be nil")
	errNoKey          = errors.New("limit: key must not be nil")
)
