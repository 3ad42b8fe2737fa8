// Package module reads a module's file and describes it, without running or compiling it: whether it is WebAssembly, which ABI it speaks,
// what it needs, and why it cannot be used.
//
//	file, err := module.Read("cartpole.wasm", nil, source, module.Environments, module.DefaultMaxFileBytes)
//	report, err := module.Inspect("cartpole.wasm")
//
// It has the names and signatures of the functions that the host offers, not the functions; see package guest.
package module
