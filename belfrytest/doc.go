// Package belfrytest tests services and layers: [TestLayer] is the contract of package belfry as a test, and a [Backend] is a
// mock whose part the test plays.
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
// A [Trait], here [Caps], says what is particular about a layer, and relaxes the checks that do not hold for it.
// A failure begins with the number that the broken rule has in the documentation of package belfry, and ends with
// a seed to replay it by:
//
//	rule 4: after callers were cancelled while they waited: only 2 of 3 callers get in although nobody else is there: …
//		replay: BELFRYTEST_SEED=2718281828459045 go test -run 'TestContract/rule_4:_a_cancelled_Acquire_leaves_nothing_reserved'
//
// [Allocs] checks the rule that a test of behaviour cannot: what a layer adds to a successful call.
//
// # Playing the backend
//
//	backend, svc := belfrytest.NewBackend[string, string](t)
//	backend.Allow(1)
//	go belfry.Do(ctx, svc, "hello")
//	backend.Expect("hello").Answer("world")
//	backend.ExpectNone()
//
// Grants are counted, so a test decides call by call who is admitted. Inside a synctest bubble nothing takes real time.
// Nothing hangs either: what a test leaves undone, such as a request without an answer or a permit that nobody
// gave back, fails it. [Strict] finds misused permits in front of any other service.
package belfrytest
