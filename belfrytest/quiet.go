package belfrytest

import (
	"fmt"
	"strings"
	"testing/synctest"
	"time"
)

// quiet waits until everything else in the bubble is blocked, and reports whether there is a bubble, which synctest does
// not say otherwise.
func quiet() (bubble bool) {
	defer func() {
		v := recover()
		switch text := fmt.Sprint(v); {
		case v == nil:
		case strings.Contains(text, "not in a bubble"):
			bubble = false
		case strings.Contains(text, "already in progress"): // by another goroutine; only one may
			time.Sleep(time.Nanosecond) // passes when all are blocked
			bubble = true
		default:
			panic(v)
		}
	}()
	synctest.Wait()
	return true
}
