// Package queue is the line in which callers wait for something to be handed to them. Who leaves the line in the same
// instant has either left or been handed it, never both and never neither.
package queue

// A Queue holds waiters, the oldest in front. Its zero value is empty. It has no lock of its own: the mutex that guards
// what is waited for guards the Queue too, so that nothing is free while somebody waits.
type Queue[T any] struct {
	front, back *Waiter[T]
	n           int
}

// A Waiter is one place in the line.
type Waiter[T any] struct {
	handed     chan T // has room for the one value, so that handing over never waits
	prev, next *Waiter[T]
}

// Len returns how many wait.
func (q *Queue[T]) Len() int { return q.n }

// Join adds a waiter at the back.
func (q *Queue[T]) Join() *Waiter[T] {
	w := &Waiter[T]{handed: make(chan T, 1), prev: q.back}
	if q.back == nil {
		q.front = w
	} else {
		q.back.next = w
	}
	q.back = w
	q.n++
	return w
}

// Handed returns the channel that brings the one value which w is handed. It is read without the lock.
func (w *Waiter[T]) Handed() <-chan T { return w.handed }

// HandOldest hands v to the waiter in front and reports whether there was one.
func (q *Queue[T]) HandOldest(v T) bool { return q.hand(q.front, v) }

// HandNewest hands v to the waiter at the back and reports whether there was one.
func (q *Queue[T]) HandNewest(v T) bool { return q.hand(q.back, v) }

func (q *Queue[T]) hand(w *Waiter[T], v T) bool {
	if w == nil {
		return false
	}
	q.remove(w)
	w.handed <- v
	return true
}

// Leave takes w out of the line. It reports false if w was handed something before: that is waiting in Handed, and is
// for w to keep or to pass on.
func (q *Queue[T]) Leave(w *Waiter[T]) bool {
	if w.prev == nil && q.front != w {
		return false
	}
	q.remove(w)
	return true
}

func (q *Queue[T]) remove(w *Waiter[T]) {
	if w.prev == nil {
		q.front = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.back = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	q.n--
}
