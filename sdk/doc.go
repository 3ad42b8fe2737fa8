// Package sdk is the SDK for environments in Go: the interface of one environment, spaces, arguments, random numbers.
// Package sdk/wasm turns an environment into a WebAssembly guest:
//
//	type walk struct{ position int32 }
//
//	func (w *walk) Reset(rng *sdk.Rand, obs []float32)                                 { … }
//	func (w *walk) Step(rng *sdk.Rand, action []int32, obs []float32) sdk.Result       { … }
//
//	func init() { wasm.Serve(spec, func(*sdk.Config) (*walk, error) { return &walk{}, nil }) }
//	func main() {}
//
// The folders sdk/c and sdk/rust have the same for C and Rust; a random stream or a saved state means the same in all
// three. Package sdk imports hostabi alone of the host's packages, and builds for wasip1. It is not for code that
// runs in the host.
package sdk
