// Package testkit is what tests of several packages share: descriptions of environments that do not exist, waiting for a
// condition, buffers that several goroutines write. Nothing but tests imports it.
package testkit
