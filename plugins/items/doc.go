// Package items makes values that Python reads of the messages of a pipeline, for the components that pass them to programs beside a run:
// of an episode a dict of its values, of a trajectory a dict of its columns as arrays [steps, rows, ...].
package items
