// Package diagnosis says what each instance of a run waits for, and why a run has stalled.
//
// A Record keeps the observations of one instance over time; a Run describes all instances at one moment, filled in by
// their owner. The package reads no counters and touches nothing that runs.
package diagnosis
