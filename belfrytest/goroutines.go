package belfrytest

import (
	"runtime"
	"strings"
)

// The state of a goroutine is what stands in brackets in its stack, such as "sync.Mutex.Lock, synctest bubble 7".

func atMutex(state string) bool {
	return strings.HasPrefix(state, "sync.Mutex.Lock") || strings.HasPrefix(state, "sync.RWMutex.")
}

// idle is what synctest calls durably blocked.
func idle(state string) bool { return strings.Contains(state, "(durable)") }

// goroutine returns the number of the one that calls, as it stands in stacks.
func goroutine() string {
	buf := make([]byte, 64)
	_, after, _ := strings.Cut(string(buf[:runtime.Stack(buf, false)]), "goroutine ")
	id, _, _ := strings.Cut(after, " ")
	return id
}

// stacks returns those of all goroutines, one string each.
func stacks() []string {
	buf := make([]byte, 1<<20)
	return strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
}

func stateOf(id string) string {
	for _, stack := range stacks() {
		if strings.HasPrefix(stack, "goroutine "+id+" ") {
			return state(stack)
		}
	}
	return ""
}

func state(stack string) string {
	_, after, _ := strings.Cut(stack, "[")
	in, _, _ := strings.Cut(after, "]")
	return in
}

// bubble returns the stacks of the goroutines that share one with goroutine id.
func bubble(id string) (members []string) {
	_, name, ok := strings.Cut(stateOf(id), "synctest bubble ")
	if !ok {
		return nil
	}
	for _, stack := range stacks() {
		if strings.HasSuffix(state(stack), "synctest bubble "+name) {
			members = append(members, stack)
		}
	}
	return members
}

// stuck reports whether somebody stands at a mutex, and everybody else waits.
func stuck(members []string) (yes bool) {
	for _, stack := range members {
		switch s := state(stack); {
		case atMutex(s):
			yes = true
		case !idle(s):
			return false
		}
	}
	return yes
}
