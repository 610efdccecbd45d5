// Package buffer puts a bounded waiting room in front of a service. It is late: Acquire takes a seat in the room, which says
// nothing about the inner service; Call waits in the room until the inner service has a permit for it, and then calls.
package buffer
