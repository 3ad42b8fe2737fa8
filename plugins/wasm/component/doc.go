// Package component runs components that are WebAssembly modules: what a pipeline file says with runtime = "wasm". What host and
// guest agree on is in docs/component-abi.md.
//
//	runtime, err := wasm.New(wasm.Options{})
//	modules := component.NewModules(runtime)
//	c, err := modules.Component(component.Source{Source: env.Source{Use: "shaper.wasm"}})
//
// A guest sees tokens, never handles. The pages of a block that a slot looks at are mapped into its memory before the slot runs,
// as a private view: nothing is copied, and what the guest writes there nobody else sees. The pages of a column that a wire lets it
// write are the block's own. Where they hold other columns too, it is copied into memory of the guest's and back.
//
// A guest that traps, or exceeds its limits, costs the message that it handled: what it has leased is released, and it goes on from
// the state that was saved last.
package component
