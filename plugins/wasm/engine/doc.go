// Package engine compiles modules: in this process or, within limits, in a separate one, and keeps the code in a cache on disk.
//
//	e, err := engine.New(engine.Options{Imports: imports, Log: log})
//	code, err := e.Compile(ctx, &engine.Job{Path: path, File: file, Code: metered, Limits: source})
//	module, err := code.Instantiate(memory)
//	err = errors.Join(code.Close(), e.Close())
//
// It knows nothing of a module's purpose: it takes bytes, limits and the host's functions.
package engine
