package belfryhttp

import (
	"context"
	"net/http"

	"github.com/belfry-go/belfry"
)

// An Exchange is what goes through the layers of a [ServerStack]: a request on its way in, and the same with its answer on its
// way out. So a layer of one's own is a [belfry.Layer] of Exchange and Exchange.
type Exchange struct {
	w     http.ResponseWriter
	r     *http.Request
	guard *guard // nil if nobody but the handler may answer
}

type exchanger = belfry.Service[Exchange, Exchange]

// Request returns the request. On the way out it is the one that the handler was given, with the Pattern that an
// [http.ServeMux] has found.
func (x Exchange) Request() *http.Request { return x.r }

// WithRequest returns an Exchange with another request, to be sent on or to be answered. Its context does not count: that of Call
// does.
func (x Exchange) WithRequest(r *http.Request) Exchange {
	x.r = r
	return x
}

// ResponseWriter returns what the answer is written to.
func (x Exchange) ResponseWriter() http.ResponseWriter { return x.w }

// Status returns the status of the answer, and 0 as long as there is none: a refusal is answered when it has come out of all
// layers. A handler that has returned without a word has answered 200, as in net/http; one that has hijacked
// the connection, 101.
func (x Exchange) Status() int {
	if x.guard == nil {
		return 0
	}
	return x.guard.result()
}

// ServerSemantics is what HTTP means to the layers of a [ServerStack], which has it already; layers made elsewhere may be given it. A
// call has failed if the handler answers with 500 or above, except 501 and 505, as in [Failed]; it can never be made twice;
// and it is over when the handler returns.
func ServerSemantics() belfry.Semantics[Exchange, Exchange] {
	return belfry.Semantics[Exchange, Exchange]{
		Classify: func(x Exchange, err error) belfry.Outcome {
			switch status := x.Status(); {
			case err != nil:
				out := belfry.ClassifyError(err)
				out.Retry = false
				return out
			case status == http.StatusNotImplemented, status == http.StatusHTTPVersionNotSupported, status < 500:
				return belfry.Outcome{}
			default:
				return belfry.Outcome{Kind: belfry.Failure}
			}
		},
		Copy: func(x Exchange) (Exchange, bool) { return x, false },
	}
}

// A handlerService is the service over a handler: always ready, and answered when the handler has returned.
type handlerService struct{ h http.Handler }

func (handlerService) Acquire(context.Context) (belfry.Permit, error) { return belfry.Permit{}, nil }
func (handlerService) Release(belfry.Permit)                          {}

// Call runs the handler, in the caller's goroutine: a panic is its own affair. Without a guard there is no layer that has
// changed the context.
func (s handlerService) Call(ctx context.Context, _ belfry.Permit, x Exchange) (Exchange, error) {
	if x.guard == nil {
		s.h.ServeHTTP(x.w, x.r)
		return x, nil
	}
	if err := x.guard.begin(); err != nil {
		return Exchange{}, err
	}
	x.r = x.r.WithContext(ctx)
	s.h.ServeHTTP(x.w, x.r)
	return x, x.guard.end()
}
