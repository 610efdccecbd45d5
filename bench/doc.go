// Package bench compares belfry with its peers: one benchmark for each job, the peer's way of doing it beside
// belfry's, around the same function. It is a module of its own, outside the workspace and never published, so that
// nobody who uses or builds belfry loads the peers.
//
// A benchmark is named Job/case/mode/contender. The mode serial is one caller, parallel is 64 of them (-cpu says on how
// many processors); the contender belfry is this repository. The folder tower has a program that measures
// Rust's tower under the same names. The program in compare runs both in turn and writes docs/benchmarks.md.
package bench
