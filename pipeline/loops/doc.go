// Package loops runs the event loops of a pipeline: one goroutine for each, as long as an instance lives on it.
package loops
