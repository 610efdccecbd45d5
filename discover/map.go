package discover

import "iter"

// Map returns source with its endpoints renamed, moved, weighted or left out: f is given each that is there, and returns the one to be in its
// place, or false for none. Its Remove does not matter. f must give the same answer for the same endpoint.
//
// An endpoint that f gives another key when it moves is removed under the old one, after the new one is inserted. Endpoints that f gives
// the same key are one, which is removed with the last of them. Errors are passed on; a panic of f is the reader's.
func Map(source iter.Seq2[Change, error], f func(Change) (Change, bool)) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		m := mapping{f: f, keys: map[string]string{}, ids: map[string]int{}, named: claims{}}
		for change, err := range source {
			if err != nil {
				if !yield(change, err) {
					return
				}
				continue
			}
			for _, change := range m.after(change) {
				if !yield(change, nil) {
					return
				}
			}
		}
	}
}

// A mapping is what became of the endpoints of a source. Each of them is as a source of its own to claims.
type mapping struct {
	f     func(Change) (Change, bool)
	keys  map[string]string // what the key of each has become
	ids   map[string]int
	last  int
	named claims
}

// after returns what a change of the source means.
func (m *mapping) after(change Change) (changes []Change) {
	key := change.ID()
	before, known := m.keys[key]
	to, kept := Change{}, false
	if !change.Remove {
		to, kept = m.f(change)
		to.Remove = false
	}
	if kept {
		if !known {
			m.last++
			m.ids[key] = m.last
		}
		m.keys[key] = to.ID()
		changes = append(changes, m.named.after(m.ids[key], to))
	}
	if known && (!kept || before != to.ID()) {
		changes = append(changes, m.named.after(m.ids[key], Remove(before)))
	}
	if known && !kept {
		delete(m.keys, key)
		delete(m.ids, key)
	}
	return changes
}
