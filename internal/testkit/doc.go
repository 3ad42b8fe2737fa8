// Package testkit is shared by tests of several packages: the check for goroutines left behind, waiting for a condition,
// a buffer that several goroutines write, programs and processes, descriptions of environments that do not exist. Nothing
// but tests imports it.
package testkit
