//go:build !unix

package belfryhttp

import "net"

// hasEnded does not know.
func hasEnded(net.Conn) bool { return false }
