package steer_test

import (
	"math/rand/v2"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/steer"
)

// services returns one of each kind, of two routes.
func services(tb testing.TB, random rand.Source) map[string]belfry.Service[string, int] {
	a, b := answers(1), answers(2)
	byPick, err1 := steer.New(always(1), steer.To("a", a), steer.To("b", b))
	byKey, err2 := steer.ByKey(func(req string) string { return req }, map[string]belfry.Service[string, int]{"a": a}, b)
	byPredicate, err3 := steer.ByPredicate(steer.When(func(req string) bool { return req == "" }, "a", a), steer.Otherwise("b", b))
	byWeight, err4 := steer.ByWeight(random, steer.Share(99, "a", a), steer.Share(1, "b", b))
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			tb.Fatal(err)
		}
	}
	return map[string]belfry.Service[string, int]{"pick": byPick, "key": byKey, "predicate": byPredicate, "weight": byWeight}
}

func BenchmarkSteer(b *testing.B) {
	for name, svc := range services(b, nil) {
		b.Run("by "+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = belfry.Do(b.Context(), svc, "a")
			}
		})
	}
}
