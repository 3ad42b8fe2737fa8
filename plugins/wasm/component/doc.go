// Package component runs components that are WebAssembly modules: nodes with runtime = "wasm" in a pipeline file. The contract
// of host and guest is in docs/reference/component-abi.md.
//
//	runtime, err := wasm.New(wasm.Options{})
//	modules := component.NewModules(runtime)
//	c, err := modules.Component(component.Source{Source: env.Source{Use: "shaper.wasm"}})
//
// A guest sees tokens, never handles. The pages of a block that a slot looks at are mapped into its memory before the slot runs, as
// a private view: nothing is copied, and nobody else sees the guest's writes. The pages of a column that a wire lets it write are
// the block's own. Where they hold other columns too, it is copied into memory of the guest's and back.
//
// A guest that traps, or exceeds its limits, loses the message that it handled: its leases are released, and it continues from the
// state that was saved last.
package component
