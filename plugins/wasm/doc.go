// Package wasm runs environments that are WebAssembly modules: the wasm runtime.
//
// A module is checked, metered and compiled once (Runtime.Load returns an env.Plugin), then forked into as many
// environments as are wanted. An Env steps inside the guest's own linear memory, into which the pages of a
// trajectory block are mapped, so that the guest's store is the trajectory. Guests are not trusted: whatever a
// module contains or does ends in an error that names it, never in a crash or a hang of the host.
//
//	rt, err := wasm.New(wasm.Options{})
//	plugin, err := rt.Load(ctx, "cartpole.wasm", nil, env.Source{Name: "rollout"})
//	env, err := plugin.NewEnv(env.Options{Name: "rollout[0]", Envs: 64, Autoreset: hostabi.SameStep})
//	err = env.Bind(block)
//	err = env.Step(0)
//
// It uses three packages, each of which can be read alone: module reads and checks a file, engine compiles it and keeps the
// code, guest runs instances of it. Package component runs components. Imports go one way:
//
//	internal/{meter,codecache,linear} ← module, engine ← guest ← wasm ← component
//
// The guest's writes into a block are not checked here: core/trajectory and its users do that.
package wasm
