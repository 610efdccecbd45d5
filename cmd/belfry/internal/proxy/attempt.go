package proxy

import (
	"context"
	"net/http"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfryhttp"
	"github.com/belfry-go/belfry/timeout"
)

// attempts bounds the time of attempts after which another can follow: the last one that is allowed, and one of a request that cannot be
// sent again, may take all the time that is left. To cut those would fail requests that only needed a little longer.
type attempts struct {
	service
	bounded *timeout.Service[*http.Request, *http.Response]
	most    int
	copied  func(*http.Request) (*http.Request, bool)
}

func newAttempts(inner service, cfg Config, tooLate func(error), meaning belfry.Semantics[*http.Request, *http.Response]) service {
	return &attempts{inner, timeout.New(inner, cfg.AttemptTimeout, timeout.Config{OnTimeout: tooLate}, meaning), cfg.Attempts, meaning.Copy}
}

// Call sends req, for a while if it can be sent again. The permit is good for either, since without Config.Wait the timeout
// remembers nothing.
func (a *attempts) Call(ctx context.Context, permit belfry.Permit, req *http.Request) (*http.Response, error) {
	x, ok := ctx.Value(exchangeKey{}).(*exchange)
	if ok && x.attempts()+1 < a.most && a.canFollow(req) {
		return a.bounded.Call(ctx, permit, req)
	}
	return a.service.Call(ctx, permit, req)
}

// canFollow reports whether another attempt at req is possible after one that was cut.
func (a *attempts) canFollow(req *http.Request) bool {
	if !belfryhttp.Idempotent(req) {
		return false
	}
	if req.Body == nil || req.Body == http.NoBody {
		return true
	}
	_, ok := a.copied(req)
	return ok
}
