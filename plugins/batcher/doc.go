// Package batcher is the component that gathers trajectories into datasets: lists of handles, not copies.
//
// It claims each block that arrives, drops blocks whose policy would be too old by the time they are learned from,
// and emits a dataset block with the handles in order of their environments once enough rows are together. A
// block that has more rows than the dataset lacks is cut along its environments, and the rest of it begins the next dataset. The
// claims end when the dataset block is released by its last reader.
//
//	kinds := map[string]func() component.Component{"batcher": batcher.New}
package batcher
