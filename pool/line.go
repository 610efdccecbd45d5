package pool

// A line is the entries that nobody uses, the one that has been idle for longest in front. Package container/list would allocate
// for each use that ends.
type line[K comparable, Req, Res any] struct {
	front, back *entry[K, Req, Res]
	n           int
}

func (l *line[K, Req, Res]) push(e *entry[K, Req, Res]) {
	e.idle, e.before, e.after = true, l.back, nil
	if l.back == nil {
		l.front = e
	} else {
		l.back.after = e
	}
	l.back = e
	l.n++
}

func (l *line[K, Req, Res]) remove(e *entry[K, Req, Res]) {
	if e.before == nil {
		l.front = e.after
	} else {
		e.before.after = e.after
	}
	if e.after == nil {
		l.back = e.before
	} else {
		e.after.before = e.before
	}
	e.idle, e.before, e.after = false, nil, nil
	l.n--
}
