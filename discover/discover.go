// Package discover says which endpoints there are. A source is any iter.Seq2[Change, error]: a sequence of endpoints that
// come and go, with an error where a change could not be learned. [List] is the source of a fixed set, [DNS] and [SRV] look
// names up, [File] reads a file. [Merge] makes one source of several, [Map] renames endpoints or leaves them out, [Subset] chooses
// those that one client of many uses, [Connections] makes several of each, and [Parse] makes a source of what a configuration says.
//
// # Sources that look again
//
// DNS, SRV and File learn whole sets, again and again. From one set to the next they yield the inserts and then the removes,
// each in alphabetical order. If there is no difference they name one endpoint again, each in its turn, so that they learn
// within an interval that nobody reads any more, and the reader learns that the last error is over; an empty set says nothing.
//
// A look that fails yields an error and keeps the last known set. So does one that finds nobody, unless [Config].AllowEmpty is
// set, in which case all are removed; a balancer then has to allow that too, or it keeps the last of them.
//
// The next look comes after [Config].Interval; after a failure it comes sooner, after a second, then two, four and so on up
// to the interval. Chance shortens all of these pauses by up to [Config].Jitter.
//
// # Writing a source
//
// The one who ranges over a source, such as a balancer, does so in a goroutine of its own, so a source waits for
// news by blocking. What it says:
//
//   - A change is about one key. The key is the endpoint's identity, the address where it is at present. Saying the same twice is
//     harmless; another address for a known key moves that endpoint. Other attributes (weight, zone, priority, host) for a known key
//     and address change what the endpoint is chosen by, and nothing else.
//   - If one update brings and takes endpoints, the inserts come before the removes, so that the set is never
//     smaller than both need.
//   - An error beside a change says that nothing was learned. It changes nothing: the last known set stays.
//   - A source that ends has said everything; its set is final.
//
// The reader breaks out of the loop when it has enough: the source's yield returns false, and the source returns. It is told so only
// when it yields. A source that may block for long also needs a way of its own to be stopped, such as a
// context that its maker cancels together with closing the balancer; a balancer does not wait for it.
package discover

import "iter"

// A Change says that an endpoint is there, or that it is gone.
type Change struct {
	// Key identifies the endpoint. Empty means that the address does.
	Key string
	// Addr is where the endpoint is, in whatever form its dialler understands. It does not matter to a Remove.
	Addr string
	// Weight is how many times as many calls the endpoint should get as one of weight 1. 0 and less mean 1.
	Weight int
	// Zone is where the endpoint is, in the words of whoever runs it: a data centre, a rack. Empty means that nobody knows.
	Zone string
	// Priority says who stands in for whom: endpoints of a higher number are for when those of lower numbers are not enough. Less than 0
	// means 0.
	Priority int
	// Host is the machine on which the endpoint runs: what is there fails together. Empty means the host in Addr.
	Host string
	// Generation tells endpoints apart that are at the same address one after the other, as [Connections] makes them: another number for a known key
	// moves the endpoint, as another address does.
	Generation int
	// Remove says that the endpoint is gone.
	Remove bool
}

// Insert returns the change that says that the endpoint at addr is there. Its key is addr.
func Insert(addr string) Change { return Change{Key: addr, Addr: addr} }

// Remove returns the change that says that the endpoint with key is gone.
func Remove(key string) Change { return Change{Key: key, Remove: true} }

// ID returns the key of the endpoint that c is about.
func (c Change) ID() string {
	if c.Key == "" {
		return c.Addr
	}
	return c.Key
}

// List returns the source of a fixed set: it inserts each of addrs and ends. An address that is there twice is one
// endpoint.
func List(addrs ...string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for _, addr := range addrs {
			if !yield(Insert(addr), nil) {
				return
			}
		}
	}
}
