package queue_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/belfry-go/belfry/internal/queue"
)

func TestQueue(t *testing.T) {
	for _, c := range []struct {
		name  string
		leave []int // indexes into five waiters
		hand  func(*queue.Queue[int], int) bool
		want  []int
	}{
		{"the oldest first", nil, (*queue.Queue[int]).HandOldest, []int{0, 1, 2, 3, 4}},
		{"the newest first", nil, (*queue.Queue[int]).HandNewest, []int{4, 3, 2, 1, 0}},
		{"the front has left", []int{0}, (*queue.Queue[int]).HandOldest, []int{1, 2, 3, 4}},
		{"the back has left", []int{4}, (*queue.Queue[int]).HandNewest, []int{3, 2, 1, 0}},
		{"some between have left", []int{2, 1}, (*queue.Queue[int]).HandOldest, []int{0, 3, 4}},
		{"all have left", []int{4, 0, 2, 1, 3}, (*queue.Queue[int]).HandOldest, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var q queue.Queue[int]
			var ws []*queue.Waiter[int]
			for range 5 {
				ws = append(ws, q.Join(-1))
			}
			for _, i := range c.leave {
				if !q.Leave(ws[i]) {
					t.Errorf("waiter %d could not leave", i)
				}
			}
			if got := q.Len(); got != len(c.want) {
				t.Errorf("%d waiters, want %d", got, len(c.want))
			}
			for turn, i := range c.want {
				if !c.hand(&q, turn) {
					t.Fatalf("nobody waits at turn %d", turn)
				}
				select {
				case <-ws[i].Handed():
					if got := ws[i].Value(); got != turn {
						t.Errorf("waiter %d was handed %d, want %d", i, got, turn)
					}
				default:
					t.Errorf("turn %d went to another than waiter %d", turn, i)
				}
			}
			if c.hand(&q, 9) || q.Len() != 0 {
				t.Error("somebody waits who should not")
			}
		})
	}
}

func TestQueueLeaveAfterHand(t *testing.T) {
	var q queue.Queue[string]
	first, second := q.Join(""), q.Join("")
	q.HandOldest("a place")
	if q.Leave(first) {
		t.Error("a waiter left with a place in its hand")
	}
	<-first.Handed()
	if got := first.Value(); got != "a place" {
		t.Errorf("handed %q", got)
	}
	if !q.Leave(second) || q.Leave(second) {
		t.Error("a waiter leaves exactly once")
	}
}

// TestQueueModel compares with a slice.
func TestQueueModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var q queue.Queue[int]
	var model []*queue.Waiter[int]
	for step := range 20_000 {
		switch k := r.IntN(5); {
		case k < 2:
			model = append(model, q.Join(-step))
		case len(model) == 0:
		case k == 2:
			i := r.IntN(len(model))
			q.Leave(model[i])
			model = slices.Delete(model, i, i+1)
		case k == 3:
			q.HandOldest(step)
			<-model[0].Handed()
			if got := model[0].Value(); got != step {
				t.Fatalf("step %d: the oldest was handed %d", step, got)
			}
			model = model[1:]
		default:
			q.HandNewest(step)
			<-model[len(model)-1].Handed()
			if got := model[len(model)-1].Value(); got != step {
				t.Fatalf("step %d: the newest was handed %d", step, got)
			}
			model = model[:len(model)-1]
		}
		if v, ok := q.Oldest(); ok != (len(model) > 0) || ok && v != model[0].Value() {
			t.Fatalf("step %d: the oldest has %d, %v", step, v, ok)
		}
		if q.Len() != len(model) {
			t.Fatalf("step %d: %d waiters, want %d", step, q.Len(), len(model))
		}
	}
}

// A waiter joins a line of a thousand, and the oldest is handed something.
func BenchmarkHand(b *testing.B) {
	var q queue.Queue[struct{}]
	for range 1000 {
		q.Join(struct{}{})
	}
	b.ReportAllocs()
	for b.Loop() {
		q.Join(struct{}{})
		q.HandOldest(struct{}{})
	}
}
