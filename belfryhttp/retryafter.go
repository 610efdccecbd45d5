package belfryhttp

import (
	"net/http"
	"strings"
	"time"
)

// maxRetryAfter is the most that ParseRetryAfter returns. What is longer means never just as well, and a time that far
// ahead can still be added to.
const maxRetryAfter = 365 * 24 * time.Hour

// ParseRetryAfter reads the value of a Retry-After header field (RFC 9110, 10.2.3): a number of seconds, or a date, which it
// turns into the time from now. A date in the past is 0; more than a year is a year. It returns false for anything else: signs, fractions,
// units, an empty value.
func ParseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.Trim(value, " \t")
	if value == "" {
		return 0, false
	}
	if d, ok := parseSeconds(value); ok {
		return d, true
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return min(max(date.Sub(now), 0), maxRetryAfter), true
}

func parseSeconds(digits string) (time.Duration, bool) {
	var seconds time.Duration
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return 0, false
		}
		seconds = min(seconds*10+time.Duration(c-'0'), maxRetryAfter/time.Second)
	}
	return seconds * time.Second, true
}

// retryAfter returns how long res asks to wait. A date is measured against the server's own clock, if res shows it.
func retryAfter(res *http.Response) time.Duration {
	value := res.Header.Get("Retry-After")
	if value == "" {
		return 0
	}
	now, err := http.ParseTime(res.Header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	d, _ := ParseRetryAfter(value, now)
	return d
}
