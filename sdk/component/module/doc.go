// Package module makes a WebAssembly module out of a component that is written against sdk/component. Its main package is
//
//	func init() { module.Serve("shaper@1", shaper.New) }
//	func main() {}
//
// and is built with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags=-s -o shaper.wasm .
//
// The package exports the functions of component ABI v1. It does something on wasip1 alone. Its components cannot make arenas.
// Metrics, the log and Stop must be granted if the code uses them: metric, log, stop.
package module
