// Package files reads files that others may have written or replaced: a pipeline, a module, a checkpoint. Only
// regular files are read, and never more of them than the caller has room for, so a pipe does not hang the host
// and a device does not fill its memory.
//
//	src, err := files.Read("pipeline.toml", 64<<10)
//
// Replace writes one as a whole. What the content means is up to the caller.
package files
