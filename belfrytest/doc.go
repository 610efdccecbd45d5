// Package belfrytest tests services and layers: a mock [Backend] for the inner end, and [TestLayer], which is the contract
// of package belfry as a test.
//
// # Testing a layer of one's own
//
//	func TestContract(t *testing.T) {
//		belfrytest.TestLayer(t, func(t testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
//			svc := mine.New(inner, mine.Config{Limit: 3})
//			return svc, svc.Close // nil if there is nothing to stop
//		}, belfrytest.Caps(3))
//	}
//
// A [Trait] says what is particular about a layer, and relaxes the checks that do not hold for it. Failures begin with
// the number of the rule that is broken, as in "rule 4: …", and end with a seed to replay them by.
//
// # Playing the backend
//
//	backend, svc := belfrytest.NewBackend[string, string](t)
//	backend.Allow(1)
//	go belfry.Do(ctx, svc, "hello")
//	backend.Expect("hello").Answer("world")
//
// Nothing here hangs: whatever a test has left undone fails it, by name.
package belfrytest
