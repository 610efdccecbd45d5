package belfryhttp

import (
	"net/http"

	"github.com/belfry-go/belfry/stack"
)

// NewStack returns a stack of layers for HTTP clients: [stack.New] with [Semantics]. It reads what Semantics reads of
// cfg; one that is not valid is reported by the stack's Build.
func NewStack(cfg ...Config) stack.Stack[*http.Request, *http.Response] {
	s := stack.New[*http.Request, *http.Response]()
	c, err := only(cfg)
	if err != nil {
		return s.Fail("belfryhttp", err)
	}
	return s.Semantics(Semantics(c))
}
