//go:build unix

package belfryhttp

import (
	"errors"
	"net"
	"syscall"
)

// hasEnded reports whether the peer has closed or reset c. It looks at what has arrived, takes nothing of it, and does not wait;
// somebody else may be waiting in Read.
func hasEnded(c net.Conn) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	ended := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		ended = err == nil && n == 0 || errors.Is(err, syscall.ECONNRESET)
	})
	return err == nil && ended
}
