package retry_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/retry"
)

func TestMemory(t *testing.T) {
	t.Run("D32 nothing of a request is kept by the context of its response", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			keepsNothing(t, func(inner service, sem semantics) service { return retry.New(inner, retry.Config{}, sem) })
		})
	})
	t.Run("D32 nothing of a request is kept with a policy of one's own", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			keepsNothing(t, func(inner service, sem semantics) service {
				return retry.NewPolicy(inner, retry.Standard[*body, *body](retry.Config{}), sem)
			})
		})
	})
	t.Run("D32 a request is copied only to be sent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			copies := 0
			sem := pages
			sem.Copy = func(req string) (string, bool) { copies++; return req, true }
			for want, in := range []*server{
				newServer(t, 1, statuses(200)),
				newServer(t, 1, statuses(503, 200)),
				newServer(t, 1, statuses(503)),
			} {
				copies = 0
				res, err := belfry.Do(t.Context(), retry.New(in, retry.Config{}, sem), "hello")
				if err != nil || copies != want {
					t.Errorf("%v, %d copies, want %d", err, copies, want)
				}
				res.Close()
			}
		})
	})
}

type (
	body      [1 << 10]byte
	service   = belfry.Service[*body, *body]
	semantics = belfry.Semantics[*body, *body]
)

// keepsNothing makes three attempts, keeps the context of the last, and fails if that keeps a request or a response.
func keepsNothing(t *testing.T, wrap func(service, semantics) service) {
	var kept context.Context
	var requests, responses []weak.Pointer[body]
	svc := wrap(belfry.Of(func(ctx context.Context, req *body) (*body, error) {
		kept = ctx
		requests = append(requests, weak.Make(req))
		res := new(body)
		responses = append(responses, weak.Make(res))
		return res, nil
	}), semantics{
		Classify: func(*body, error) belfry.Outcome { return belfry.Outcome{Kind: belfry.Failure, Retry: true} },
		Copy:     func(req *body) (*body, bool) { next := *req; return &next, true },
	})
	if _, err := belfry.Do(t.Context(), svc, new(body)); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.GC()
	for i := range requests {
		if requests[i].Value() != nil || responses[i].Value() != nil {
			t.Errorf("attempt %d: request kept %v, response kept %v", i+1, requests[i].Value() != nil, responses[i].Value() != nil)
		}
	}
	if len(requests) != 3 {
		t.Errorf("%d attempts", len(requests))
	}
	runtime.KeepAlive(kept)
}
