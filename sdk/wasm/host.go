//go:build !wasip1

package wasm

import "log"

// Log writes to the standard logger: natively there is no host.
func Log(level uint32, text string) { log.Printf("level %d: %s", level, text) }

// TryLog is Log.
func TryLog(level uint32, text string) { Log(level, text) }

// Metric writes to the standard logger: natively there is no host.
func Metric(name string, value float64) { log.Printf("metric %s: %g", name, value) }
