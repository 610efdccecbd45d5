package proxy

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
)

func TestAReasonIsLoggedOnceASecondAndCountedAlways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		f := newFailureLog(slog.New(slog.NewTextHandler(&out, nil)))
		req := httptest.NewRequest(http.MethodGet, "http://x/path", nil)
		full := &belfry.Rejection{Layer: "buffer", Reason: "full", Err: belfry.ErrNotReady}
		late := &belfry.Rejection{Layer: "buffer", Reason: "queued too long", Err: belfry.ErrNotReady}
		for range 100 {
			f.note(req, full)
		}
		f.note(req, late)
		f.note(req, context.Canceled)
		if got := strings.Count(out.String(), "\n"); got != 2 {
			t.Errorf("%d lines for two reasons:\n%s", got, out.String())
		}
		for _, want := range []string{"status=503", `reason="buffer: full"`, "method=GET", "path=/path", "queued too long"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s is missing in\n%s", want, out.String())
			}
		}
		out.Reset()
		time.Sleep(quiet)
		f.note(req, full)
		if !strings.Contains(out.String(), "suppressed=99") {
			t.Errorf("a second later: %q", out.String())
		}
		if failed, gone := f.counts(); failed != 102 || gone != 1 {
			t.Errorf("%d failed and %d gone, want 102 and 1", failed, gone)
		}
	})
}
