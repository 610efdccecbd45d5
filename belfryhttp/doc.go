// Package belfryhttp joins services to net/http: an [http.RoundTripper] is a service by [Transport], a service is an
// [http.RoundTripper] by [RoundTripper], and [Balance] is a service over many servers. [NewStack] puts layers between
// them that know what HTTP means.
//
//	replicas, err := belfryhttp.Balance(discover.List("http://a:8080", "http://b:8080"), balance.Config{})
//	svc, err := belfryhttp.NewStack().LoadShed().Buffer(64).ConcurrencyLimit(500).Retry(retry.Config{}).Build(replicas)
//	client := &http.Client{Transport: belfryhttp.RoundTripper(svc)}
//
// # Readiness
//
// A [Leaf] is always ready, for a transport cannot say whether it has room; limits make it known. A Balancer is ready
// when one of its endpoints is.
//
// # When a call is over
//
// A response arrives with its header, and its call goes on until the body was read to its end or to an error, or was
// closed; so long it holds its place in a limit, and so long its context lives. A client that neither reads nor closes
// keeps that place, also when its context has ended: close every body, as everywhere in net/http. A connection upgraded by a 101 is over when it is closed.
//
// # Sending again
//
// What may be sent again, and when, is decided by [Semantics]. In short: a request is sent again after 429, 502, 503, 504
// or an error, if it is idempotent by its method or by an Idempotency-Key and if its body can be had again: from GetBody,
// or from the buffer that Config.BodyBuffer allows. One that was certainly not sent, because there was no connection, may be
// sent again whatever it is. Retry-After is obeyed by package retry, in both its forms. A discarded response is
// drained within bounds, or its connection closed, before anything else is acquired.
//
// # Cancellation
//
// The context given to Call, which is the request's own if it came through a RoundTripper, bounds everything up to the end of the
// response's body. Nothing here ends it earlier.
//
// # Load
//
// Servers may say in a header how busy they are ([ParseLoad]), and be asked ([Config].ProbePath); a balancer with [load.Reported] or
// [load.Probing] listens. [ReportLoad] makes a handler say so.
//
// # Answers made here
//
// [Status] and [WriteError] turn errors into answers, marked with [ReasonHeader]. Where services that retry call each other,
// [RetryHeader] keeps the attempts from multiplying.
//
// # Servers
//
// [NewServerStack] puts layers before an [http.Handler]: a limit, a waiting room, shedding, a deadline. What they refuse is
// answered here, and so is the deadline.
//
//	h, err := belfryhttp.NewServerStack().LoadShed().Buffer(500).ConcurrencyLimit(50).Timeout(2 * time.Second).Handler(mux)
package belfryhttp
