// Package diagnosis says what each instance of a run waits for, and why a run stands still.
//
// A Record keeps what has been seen of one instance over time; a Run is what all of them do at one moment, filled in by
// the owner of the instances. It reads no counters and touches nothing that runs.
package diagnosis
