// Package ctest builds programs in C against sdk/c/native, for tests.
//
//	func TestPlugin(t *testing.T) {
//		program := ctest.Build(t, ctest.Plugin, "plugin.c")
//		proxy.New(ctx, r, spawn.Program{Name: "plugin", Path: program}, "kind")
//	}
//
// Its own tests test the library: under sanitizers, against the rings, arenas and links of the host, and as a runtime
// of components. It is not a build system: one command builds a plugin; see rlhost.h.
package ctest
