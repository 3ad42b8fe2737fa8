//go:build wasip1

package wasm

import "unsafe"

//go:wasmimport rl log
func hostLog(level uint32, text unsafe.Pointer, n uint32)

//go:wasmimport rl metric
func hostMetric(name unsafe.Pointer, n uint32, value float64)

// Log sends a line to the host's log; the pipeline must grant "log". Levels are 0 debug, 1 info, 2 warning,
// 3 error.
func Log(level uint32, text string) {
	hostLog(level, unsafe.Pointer(unsafe.StringData(text)), uint32(len(text)))
}

// Metric reports a number under env/; the pipeline must grant "metric".
func Metric(name string, value float64) {
	hostMetric(unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)), value)
}
