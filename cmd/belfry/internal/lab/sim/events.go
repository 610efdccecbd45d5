package sim

// An event is the end of a call.
type event struct {
	at    int64
	order uint32 // of two at once, the earlier call ends first
	call  int32
}

func (e event) before(other event) bool {
	return e.at < other.at || e.at == other.at && e.order < other.order
}

// events is a heap with four children to a node: it is less deep than one with two, and they lie in one cache line.
type events struct {
	heap  []event
	order uint32
}

const children = 4

func (e *events) len() int     { return len(e.heap) }
func (e *events) first() event { return e.heap[0] }

func (e *events) push(at int64, call int32) {
	e.order++
	added := event{at, e.order, call}
	e.heap = append(e.heap, added)
	i := len(e.heap) - 1
	for i > 0 {
		parent := (i - 1) / children
		if !added.before(e.heap[parent]) {
			break
		}
		e.heap[i] = e.heap[parent]
		i = parent
	}
	e.heap[i] = added
}

func (e *events) pop() event {
	first, last := e.heap[0], e.heap[len(e.heap)-1]
	e.heap = e.heap[:len(e.heap)-1]
	if len(e.heap) > 0 {
		e.sink(last)
	}
	return first
}

// sink puts moved where the first was, or below.
func (e *events) sink(moved event) {
	i := 0
	for {
		least := i*children + 1
		if least >= len(e.heap) {
			break
		}
		for child := least + 1; child < min(i*children+1+children, len(e.heap)); child++ {
			if e.heap[child].before(e.heap[least]) {
				least = child
			}
		}
		if !e.heap[least].before(moved) {
			break
		}
		e.heap[i] = e.heap[least]
		i = least
	}
	e.heap[i] = moved
}
