// Package record is what the load of end-to-end tests tells of a request.
package record

import "time"

// A Record is one request that is over.
type Record struct {
	ID, Method string
	Sent, Over time.Time
	// Status is 0 if there was no answer.
	Status int
	// Backend is the server that answered, Reason why the proxy did so itself.
	Backend, Reason string
	// Broke says that an answer broke off.
	Broke bool
	// Error is what was wrong, empty if all is well.
	Error string
}
