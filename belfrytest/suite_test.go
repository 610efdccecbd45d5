package belfrytest

import (
	"strings"
	"testing"

	"github.com/belfry-go/belfry"
)

func TestReplaySeed(t *testing.T) {
	s := newSuite(passThrough, nil)
	if err := s.replaySeed(""); err != nil || s.replay {
		t.Errorf("without a seed: replay %v, error %v", s.replay, err)
	}
	if err := s.replaySeed("4711"); err != nil || !s.replay || s.base != 4711 {
		t.Errorf("with a seed: replay %v, base %d, error %v", s.replay, s.base, err)
	}
	if err := s.replaySeed("x"); err == nil {
		t.Error("a seed that is no number passes")
	}
}

// TestSeed shows that a seed decides what is done, and that a failure can be had again.
func TestSeed(t *testing.T) {
	for _, p := range plantedLayers {
		if p.name != "leaks on a panic in Call" {
			continue
		}
		v := find(t, p.suite())
		s := p.suite()
		s.base, s.replay = v.seed, true
		again := s.check(t, v.check)
		if again == nil || again.text != v.text || again.seed != v.seed {
			t.Errorf("seed %d: first %q, then %v", v.seed, v.text, again)
		}
	}
}

func TestHiddenState(t *testing.T) {
	t.Run("D63 a service that keeps its caller's permit is found", func(t *testing.T) {
		for _, p := range plantedLayers {
			if p.name != "keeps the permit in the service" {
				continue
			}
			if v := find(t, p.suite()); v == nil || v.rule != 1 {
				t.Errorf("the suite found %+v, want rule 1 broken", v)
			}
		}
	})
}

func TestTraitsJoin(t *testing.T) {
	got := join([]Trait{Late, Caps(5), Reorders, Caps(3), Caps(4)})
	if !got.has(Late) || !got.has(Reorders) || got.has(Sheds) || got.caps != 3 {
		t.Errorf("joined to %+v", got)
	}
	if got := join([]Trait{Hedges}); !got.has(Retries) {
		t.Error("Hedges does not imply Retries")
	}
	defer func() {
		if recover() == nil {
			t.Error("Caps(0) does not panic")
		}
	}()
	Caps(0)
}

// TestLeftBehind shows that a goroutine which outlives the layer is found.
func TestLeftBehind(t *testing.T) {
	s := newSuite(func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
		go func() { <-make(chan int) }()
		return inner, nil
	}, nil)
	if v := s.all(t); v == nil || !strings.Contains(v.text, "goroutines were still blocked") {
		t.Errorf("the suite found %+v, want blocked goroutines", v)
	}
}

// TestStopped shows that the layer is stopped once its callers are done, outermost first.
func TestStopped(t *testing.T) {
	var order []int
	n := 0
	s := newSuite(func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
		n++
		me := n
		return inner, func() { order = append(order, me) }
	}, nil)
	for _, c := range checks {
		if c.name == "the layer over itself knows its own permits" {
			s.trial(t, c, 1)
		}
	}
	if len(order) != 2 || order[0] != 2 || order[1] != 1 {
		t.Errorf("stopped in the order %v, want 2 1", order)
	}
}
