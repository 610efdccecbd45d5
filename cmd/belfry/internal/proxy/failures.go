package proxy

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/belfry-go/belfry/belfryhttp"
)

// quiet is how long a reason is not told again. A proxy that sheds load must not spend it on logging.
const quiet = time.Second

// A failureLog counts what had to be answered by the proxy itself, and tells of each reason at most once in a while.
type failureLog struct {
	log *slog.Logger

	mu      sync.Mutex // guards what follows; the log is not called under it
	reasons map[string]*reasonCount
	failed  uint64
	gone    uint64 // clients that left, which is no failure
}

type reasonCount struct {
	told    time.Time
	skipped uint64
	all     uint64
}

// What there is no error of belfryhttp for.
const (
	reasonClientGone = "client gone" // as belfryhttp says it
	reasonBrokenOff  = "answer broken off"
)

func newFailureLog(log *slog.Logger) *failureLog {
	return &failureLog{log: log, reasons: map[string]*reasonCount{}}
}

// note counts one failure, tells of it if its reason was not told lately, and returns the reason.
func (f *failureLog) note(r *http.Request, err error) string {
	status, reason, _ := belfryhttp.Status(err)
	gone := status == belfryhttp.StatusClientGone
	skipped, tell := f.count(reason, gone, time.Now())
	switch {
	case !tell:
	case gone:
		f.log.Debug("client gone", "method", r.Method, "path", r.URL.Path)
	default:
		attrs := []any{"status", status, "reason", reason, "method", r.Method, "path", r.URL.Path, "error", err}
		if skipped > 0 {
			attrs = append(attrs, "suppressed", skipped)
		}
		f.log.Warn("request failed", attrs...)
	}
	return reason
}

// broken counts an answer that broke off, and tells of it if none was told of lately. It returns the reason: that the client has
// left, or that the server failed.
func (f *failureLog) broken(r *http.Request, endpoint string) string {
	if r.Context().Err() != nil {
		f.count(reasonClientGone, true, time.Now())
		return reasonClientGone
	}
	if skipped, tell := f.count(reasonBrokenOff, false, time.Now()); tell {
		f.log.Warn("request failed", "reason", reasonBrokenOff, "method", r.Method, "path", r.URL.Path, "endpoint", endpoint, "suppressed", skipped)
	}
	return reasonBrokenOff
}

// count adds one, and reports whether it should be told, with how many that were not.
func (f *failureLog) count(reason string, gone bool, now time.Time) (skipped uint64, tell bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if gone {
		f.gone++
	} else {
		f.failed++
	}
	c := f.reasons[reason]
	if c == nil {
		c = &reasonCount{}
		f.reasons[reason] = c
	}
	c.all++
	if !c.told.IsZero() && now.Sub(c.told) < quiet {
		c.skipped++
		return 0, false
	}
	skipped, c.skipped, c.told = c.skipped, 0, now
	return skipped, true
}

// counts returns how many requests failed, and how many clients left.
func (f *failureLog) counts() (failed, gone uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed, f.gone
}

// reasonCounts returns how often there was which reason.
func (f *failureLog) reasonCounts() map[string]uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make(map[string]uint64, len(f.reasons))
	for reason, c := range f.reasons {
		all[reason] = c.all
	}
	return all
}
