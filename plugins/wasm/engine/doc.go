// Package engine compiles modules: in this process or, within limits, in one of its own, and keeps the code in a cache on disk.
//
//	e, err := engine.New(engine.Options{Imports: imports, Log: log})
//	code, err := e.Compile(ctx, &engine.Job{Path: path, File: file, Code: metered, Limits: source})
//	module, err := code.Instantiate(memory)
//	err = errors.Join(code.Close(), e.Close())
//
// It knows nothing of what a module is for: it takes bytes and limits, and the host's functions as they are given.
package engine
