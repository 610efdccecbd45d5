package belfrytest

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/belfry-go/belfry"
)

// A grant is what one permit of a mock stands for. It is good for one use.
type grant struct {
	owner any
	spent bool
	by    []uintptr // who asked for it
}

// newGrant remembers who calls Acquire, its caller.
func newGrant(owner any) *grant {
	pcs := make([]uintptr, 16)
	return &grant{owner: owner, by: pcs[:runtime.Callers(3, pcs)]}
}

// spend marks what permit stands for as used, and says what is wrong with that.
func spend(permit belfry.Permit, owner any) (g *grant, problem string) {
	g, ok := permit.Value().(*grant)
	switch {
	case permit.Value() == nil:
		return nil, "a permit that was never granted (the zero Permit)"
	case !ok || g.owner != owner:
		return nil, fmt.Sprintf("a permit that another service granted (it holds a %T)", permit.Value())
	case g.spent:
		return nil, "a permit that was spent already, granted to" + g.trace()
	}
	g.spent = true
	return g, ""
}

// leaked says of each grant in held that it was not used.
func leaked(held map[*grant]struct{}) (problems []string) {
	for g := range held {
		problems = append(problems, "rule 2: a permit was neither spent by Call nor given back by Release, granted to"+g.trace())
	}
	return problems
}

// trace names the callers, from the innermost.
func (g *grant) trace() string {
	var b strings.Builder
	frames := runtime.CallersFrames(g.by)
	for range 5 {
		f, more := frames.Next()
		if f.File == "" || strings.HasPrefix(f.Function, "testing.") || strings.HasPrefix(f.Function, "runtime.") {
			break
		}
		fmt.Fprintf(&b, "\n\t%s:%d", f.File, f.Line)
		if !more {
			break
		}
	}
	return b.String()
}
