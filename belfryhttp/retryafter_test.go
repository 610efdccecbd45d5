package belfryhttp

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestParseRetryAfter(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, c := range []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"0", 0, true},
		{"1", time.Second, true},
		{"120", 2 * time.Minute, true},
		{" \t7 ", 7 * time.Second, true},
		{"007", 7 * time.Second, true},
		{"31536000", year, true},
		{"31536001", year, true},
		{"18446744073709551617", year, true}, // 1 if it wraps
		{strings.Repeat("9", 400), year, true},
		{"", 0, false},
		{" ", 0, false},
		{"-1", 0, false},
		{"+1", 0, false},
		{"1.5", 0, false},
		{"1s", 0, false},
		{"1, 2", 0, false},
		{"١", 0, false}, // a digit, but not of ASCII
		{"soon", 0, false},
		{"Sun, 01 Mar 2026 12:00:30 GMT", 30 * time.Second, true},
		{"Sunday, 01-Mar-26 12:00:30 GMT", 30 * time.Second, true},
		{"Sun Mar  1 12:00:30 2026", 30 * time.Second, true},
		{"Sun, 01 Mar 2026 12:00:00 GMT", 0, true},
		{"Sun, 01 Mar 2026 11:59:59 GMT", 0, true},
		{"Thu, 01 Jan 1970 00:00:00 GMT", 0, true},
		{"Mon, 01 Jan 0001 00:00:00 GMT", 0, true},
		{"Fri, 31 Dec 9999 23:59:59 GMT", year, true},
		{"Sun, 32 Mar 2026 12:00:00 GMT", 0, false},
	} {
		got, ok := ParseRetryAfter(c.value, noon)
		if got != c.want || ok != c.ok {
			t.Errorf("ParseRetryAfter(%q) = %v, %v; want %v, %v", c.value, got, ok, c.want, c.ok)
		}
	}
}

func TestRetryAfterIsMeasuredByTheServersClock(t *testing.T) {
	header := func(kv ...string) *http.Response {
		res := &http.Response{Header: http.Header{}}
		for i := 0; i < len(kv); i += 2 {
			res.Header.Set(kv[i], kv[i+1])
		}
		return res
	}
	wrong := header("Date", "Sun, 01 Mar 1998 12:00:00 GMT", "Retry-After", "Sun, 01 Mar 1998 12:00:09 GMT")
	if got := retryAfter(wrong); got != 9*time.Second {
		t.Errorf("with a clock that is years late: %v, want 9s", got)
	}
	soon := header("Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
	if got := retryAfter(soon); got < 59*time.Minute || got > time.Hour {
		t.Errorf("without Date: %v, want about an hour", got)
	}
	if got := retryAfter(header()); got != 0 {
		t.Errorf("without Retry-After: %v", got)
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, seed := range []string{"0", "120", "-1", "1.5", "99999999999999999999", "Sun, 01 Mar 2026 12:00:30 GMT", "Sun Mar  1 12:00:30 2026", ""} {
		f.Add(seed, int64(0))
	}
	f.Add("Fri, 31 Dec 9999 23:59:59 GMT", int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, value string, at int64) {
		now := time.Unix(at, 0)
		d, ok := ParseRetryAfter(value, now)
		if !ok && d != 0 {
			t.Errorf("ParseRetryAfter(%q) = %v, false", value, d)
		}
		if d < 0 || d > maxRetryAfter {
			t.Errorf("ParseRetryAfter(%q) = %v, out of range", value, d)
		}
		if ok && strings.ContainsAny(value, "+-") && !strings.Contains(value, ":") {
			t.Errorf("ParseRetryAfter(%q) took a sign", value)
		}
	})
}
