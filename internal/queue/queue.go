// Package queue is the line in which callers wait for something to be handed to them. Who leaves the line in the same
// instant has either left or been handed it, never both and never neither.
package queue

// A Queue holds waiters, the oldest in front. Its zero value is empty. It has no lock of its own: the mutex that guards
// what is waited for guards the Queue too, so that nothing is free while somebody waits.
type Queue[T any] struct {
	front, back *Waiter[T]
	n           int
}

// A Waiter is one place in the line. Its value is in it and not in the channel, which is then 8 bytes smaller and one allocation instead of two; and the
// value comes first, for at the end an empty one would cost 8 bytes.
type Waiter[T any] struct {
	value      T             // what it joined with, and then what it was handed
	handed     chan struct{} // closed when it was
	prev, next *Waiter[T]
}

// Len returns how many wait.
func (q *Queue[T]) Len() int { return q.n }

// Join adds a waiter at the back, which has value v until it is handed another.
func (q *Queue[T]) Join(v T) *Waiter[T] {
	w := &Waiter[T]{value: v, handed: make(chan struct{}), prev: q.back}
	if q.back == nil {
		q.front = w
	} else {
		q.back.next = w
	}
	q.back = w
	q.n++
	return w
}

// Handed returns the channel that is closed when w is handed something. It is read without the lock.
func (w *Waiter[T]) Handed() <-chan struct{} { return w.handed }

// Value returns what w was handed. It is for who has found Handed closed, or Leave false.
func (w *Waiter[T]) Value() T { return w.value }

// Oldest returns the value of the waiter in front, and whether there is one.
func (q *Queue[T]) Oldest() (v T, ok bool) {
	if q.front == nil {
		return v, false
	}
	return q.front.value, true
}

// HandOldest hands v to the waiter in front and reports whether there was one.
func (q *Queue[T]) HandOldest(v T) bool { return q.hand(q.front, v) }

// HandNewest hands v to the waiter at the back and reports whether there was one.
func (q *Queue[T]) HandNewest(v T) bool { return q.hand(q.back, v) }

func (q *Queue[T]) hand(w *Waiter[T], v T) bool {
	if w == nil {
		return false
	}
	q.remove(w)
	w.value = v
	close(w.handed)
	return true
}

// Leave takes w out of the line. It reports false if w was handed something before: that is its Value, and is
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
