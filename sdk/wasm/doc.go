// Package wasm makes a WebAssembly guest out of an environment written in Go. A guest's main package is
//
//	func init() { wasm.Serve(spec, func(*sdk.Config) (*walk, error) { return &walk{}, nil }) }
//	func main() {}
//
// and is built with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags=-s -o walk.wasm .
//
// The package exports the functions of env ABI v1 and does the work that no environment should: batches, strides, autoreset, random
// streams, final observations, save and load. It works on any platform as far as tests need it, but exports functions on wasip1 alone.
// ServeDict is for several observations, ServeComposite for several actions.
//
// Several agents with the same spaces, sdk.Spec.Agents, are consecutive rows of action and obs. See sdk.Rewarder,
// sdk.TurnTaker and sdk.Spec.Apart.
package wasm
