// Package e2e has tests in which the proxy and the servers behind it are processes of their own, under load while things go wrong.
package e2e
