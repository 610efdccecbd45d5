package discover

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Subset says which of the endpoints of a source one client of many uses, so that a large fleet of clients does not connect to
// all of a large fleet of servers. Clients do not talk to each other: all have to see the same endpoints, under the same keys.
//
// Without Count it is a rendezvous: each client ranks the endpoints by a hash of Identity and key, and uses the first Size of its
// ranking. When an endpoint comes or goes, at most one of a client's endpoints changes. The number of clients
// that an endpoint has is a matter of chance, with a variance of Clients·p·(1 − p) for p = Size/Endpoints: with 1000 clients that use
// 10 of 100 endpoints each, 100 clients ± 9.5.
//
// With Count, clients that know how many they are share evenly: the endpoints stand in a ring, in the order of a hash of their
// keys; client Index of Count begins at Index/Count of it, and uses the next Size. The numbers of clients that two endpoints have
// differ by one at most. When an endpoint comes or goes, at most two of a client's endpoints change; when Count changes, most do.
//
// The first is that of "rendezvous hashing" (Thaler and Ravishankar, 1998), as in gRPC's proposal A68; the second is the even arc of
// Finagle's deterministic aperture.
type Subset struct {
	// Size is how many endpoints the client uses, at least 1. All, if there are no more.
	Size int
	// Identity tells the client from others: a host name, a pod name. It is needed without Count.
	Identity string
	// Count is how many clients there are, and Index which of them this is, from 0: the ordinal of a StatefulSet's pod. 0 means
	// that nobody knows.
	Index, Count int
}

// Validate says which field is out of range.
func (s Subset) Validate() error {
	switch {
	case s.Size < 1:
		return fmt.Errorf("discover: subset: size must be at least 1, got %d", s.Size)
	case s.Count < 0:
		return fmt.Errorf("discover: subset: count must be at least 1, or 0 for a rendezvous, got %d", s.Count)
	case s.Count == 0 && s.Index != 0:
		return fmt.Errorf("discover: subset: index needs a count, got index %d", s.Index)
	case s.Count > 0 && (s.Index < 0 || s.Index >= s.Count):
		return fmt.Errorf("discover: subset: index must be 0 to %d, got %d", s.Count-1, s.Index)
	case s.Count == 0 && s.Identity == "":
		return fmt.Errorf("discover: subset: identity must not be empty, or count must be given")
	}
	return nil
}

// Changes that come together are taken together, so that the first of a thousand inserts are not taken for the whole set. A set that
// keeps changing is passed on all the same.
const (
	settles = 10 * time.Millisecond
	atLeast = 100 * time.Millisecond
)

// Of returns what the client uses of source, which is read in a goroutine of its own. Changes that follow one another within 10 ms
// count as one, for up to 100 ms; of what they change, the inserts come first. If they change nothing, an endpoint is named again.
//
// When the reader has enough, source is told so by its next change, as [Merge] does, and a source that panics has ended, with a
// [PanicError]. Of panics with the error of Validate if there is one.
func (s Subset) Of(source iter.Seq2[Change, error]) iter.Seq2[Change, error] {
	if err := s.Validate(); err != nil {
		panic(err)
	}
	return func(yield func(Change, error) bool) {
		news, enough := make(chan item), make(chan struct{})
		defer close(enough)
		go forward(0, source, news, enough)
		s.read(news, yield)
	}
}

// read passes on what changes, until the source has ended or the reader has enough.
func (s Subset) read(news <-chan item, yield func(Change, error) bool) {
	var (
		all   ranking
		used  = map[string]Change{}
		quiet = time.NewTimer(settles)
		until time.Time // when unsaid changes are said at the latest
	)
	quiet.Stop()
	defer quiet.Stop()
	say := func() bool {
		if until.IsZero() {
			return true
		}
		until = time.Time{}
		return s.say(all, used, yield)
	}
	for {
		select {
		case <-quiet.C:
			if !say() {
				return
			}
		case it := <-news:
			if it.err != nil || it.ended {
				if !say() || it.err != nil && !yield(it.change, it.err) || it.ended {
					return
				}
				continue
			}
			all.note(s.score(it.change.ID()), it.change)
			if until.IsZero() {
				until = time.Now().Add(atLeast)
			}
			quiet.Reset(min(settles, time.Until(until)))
		}
	}
}

// say yields the changes from what is used to what is to be used.
func (s Subset) say(all ranking, used map[string]Change, yield func(Change, error) bool) bool {
	chosen := s.choose(all)
	wanted, news := map[string]bool{}, false
	for _, m := range chosen {
		wanted[m.key] = true
		if c, known := used[m.key]; known && c == m.change {
			continue
		}
		used[m.key], news = m.change, true
		if !yield(m.change, nil) {
			return false
		}
	}
	for _, key := range slices.Sorted(maps.Keys(used)) {
		if wanted[key] {
			continue
		}
		delete(used, key)
		news = true
		if !yield(Remove(key), nil) {
			return false
		}
	}
	if !news && len(chosen) > 0 {
		return yield(chosen[0].change, nil)
	}
	return true
}

// choose returns what is to be used.
func (s Subset) choose(all ranking) []member {
	n := len(all)
	if n <= s.Size {
		return all
	}
	if s.Count == 0 {
		return all[:s.Size]
	}
	chosen := make([]member, 0, s.Size)
	for i := range s.Size {
		chosen = append(chosen, all[(s.start(n)+i)%n])
	}
	return chosen
}

// start is where the client begins in a ring of n. The product does not overflow before both are above three thousand million.
func (s Subset) start(n int) int { return int(uint64(s.Index) * uint64(n) / uint64(s.Count)) }

// score is the place of an endpoint: in the ring, which is the same for all, or in the client's own ranking.
func (s Subset) score(key string) uint64 {
	identity := s.Identity
	if s.Count > 0 {
		identity = ""
	}
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(identity)))
	h := sha256.New() // not for secrecy, but for hashes of similar texts that have nothing in common
	h.Write(length[:])
	h.Write([]byte(identity))
	h.Write([]byte(key))
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// A ranking is the endpoints of the source, the highest score first.
type ranking []member

type member struct {
	score  uint64
	key    string
	change Change
}

// note makes a change.
func (r *ranking) note(score uint64, change Change) {
	change.Key = change.ID()
	m := member{score, change.Key, change}
	i, known := slices.BinarySearchFunc(*r, m, func(a, b member) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.key, b.key))
	})
	switch {
	case change.Remove && known:
		*r = slices.Delete(*r, i, i+1)
	case change.Remove:
	case known:
		(*r)[i] = m
	default:
		*r = slices.Insert(*r, i, m)
	}
}
