//go:build wasip1

package wasm

import (
	"unsafe"

	"github.com/rlhost/rlhost/hostabi"
)

//go:wasmimport rl log
func hostLog(level uint32, text unsafe.Pointer, n uint32)

//go:wasmimport rl_optional log
func hostTryLog(level uint32, text unsafe.Pointer, n uint32)

//go:wasmimport rl metric_env
func hostMetric(env uint32, name unsafe.Pointer, n uint32, value float64, gather uint32)

// Log sends a line to the host's log; the pipeline must grant "log". Levels are 0 debug, 1 info, 2 warning,
// 3 error.
func Log(level uint32, text string) {
	hostLog(level, unsafe.Pointer(unsafe.StringData(text)), uint32(len(text)))
}

// TryLog is Log where the pipeline grants "log", and nothing elsewhere: the environment runs without the grant.
func TryLog(level uint32, text string) {
	hostTryLog(level, unsafe.Pointer(unsafe.StringData(text)), uint32(len(text)))
}

// Metric reports a number of the environment that is being stepped under env/, of which an episode's mean counts; the pipeline must
// grant "metric".
func Metric(name string, value float64) {
	hostMetric(uint32(exportCurrentEnv()), unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)), value, uint32(hostabi.TensorMean))
}
