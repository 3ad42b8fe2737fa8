// Package rlhost trains policies by reinforcement learning: environments and other components run in WebAssembly sandboxes, in separate
// processes or in this one, and a file in TOML wires them.
//
//	result, err := rlhost.Train(ctx, rlhost.Options{File: "pipeline.toml"})
//
// It is the front door for programs in Go; the program rlhost (cmd/rlhost) is the front door for people. docs/start/first-run.md shows
// the file.
//
// A program may rely on this package, the packages below sdk, hostabi, pipeline/graph and pipeline/session, and on the types of other
// packages that these take and return, such as core/env's. All else is what rlhost is made from, and may change in any release.
package rlhost
