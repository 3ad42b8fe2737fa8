// Package objects measures how data gets from process to process: its benchmarks hand blocks of an arena over a ring,
// and run.sh compares the object store with SMOS, queues, sockets and gRPC.
package objects
