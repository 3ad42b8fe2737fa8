//go:build !linux

package wasm

// serve has no role to play: a process that compiles needs Linux.
func serve(string, []string) {}
