//go:build !race

package belfrytest

const raceEnabled = false
