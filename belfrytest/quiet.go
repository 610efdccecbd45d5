package belfrytest

import (
	"fmt"
	"strings"
	"testing/synctest"
)

// quiet waits until everything else in the bubble is blocked, and reports whether there is a bubble. synctest does
// not say so otherwise.
func quiet() (bubble bool) {
	defer func() {
		if v := recover(); v != nil {
			if !strings.Contains(fmt.Sprint(v), "not in a bubble") {
				panic(v)
			}
			bubble = false
		}
	}()
	synctest.Wait()
	return true
}
