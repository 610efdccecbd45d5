package demo

import (
	"iter"
	"time"

	"github.com/belfry-go/belfry/discover"
)

// A trial is one run of one policy, as its servers know it: they are told when it begins, and when all is sent.
type trial struct {
	begun, sent chan struct{} // closed then
	start       time.Time     // set before begun is closed
}

func newTrial() *trial { return &trial{begun: make(chan struct{}), sent: make(chan struct{})} }

// begin is called once. All servers measure from now.
func (t *trial) begin(servers []*server) time.Time {
	t.start = time.Now()
	for _, s := range servers {
		s.enter(t)
	}
	close(t.begun)
	return t.start
}

// source names the servers that are there from the beginning at once, and the others in the order in which they come.
func (t *trial) source(servers []*server) iter.Seq2[discover.Change, error] {
	return func(yield func(discover.Change, error) bool) {
		var late []*server
		for _, s := range servers {
			switch {
			case s.joins() > 0:
				late = append(late, s)
			case !yield(discover.Insert(s.url), nil):
				return
			}
		}
		for _, s := range late {
			if !t.awaits(s.joins()) || !yield(discover.Insert(s.url), nil) {
				return
			}
		}
	}
}

// awaits waits until so long after the beginning, and reports false if all was sent before.
func (t *trial) awaits(after time.Duration) bool {
	select {
	case <-t.begun:
	case <-t.sent:
		return false
	}
	timer := time.NewTimer(time.Until(t.start.Add(after)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.sent:
		return false
	}
}
