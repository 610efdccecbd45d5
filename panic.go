package belfry

import (
	"errors"
	"fmt"
)

// A PanicError is a panic of a function that was called in a goroutine of its own: what makes a [Lazy], or what [CallAll] has
// called.
type PanicError struct {
	// Value is what it panicked with.
	Value any
	// Stack is where.
	Stack []byte
}

// Error returns the value as text.
func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Unwrap returns the value if it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// errExited is what became of a function that ended its goroutine.
var errExited = errors.New("belfry: the goroutine was ended by runtime.Goexit")
