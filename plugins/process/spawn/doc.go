// Package spawn starts native plugins, programs in any language that run as child processes, and talks to them.
// go-plugin starts them and carries control calls; what plugins/process/proxy and plugins/process/worker do with them
// goes through rings and a socket for files.
//
//	r, err := spawn.New(spawn.Options{Log: log})
//	defer r.Close()
//	d, err := r.Describe(ctx, spawn.Program{Name: "shaper", Path: "bin/shaper"})
//	p, err := r.Start(ctx, program, spawn.StartOptions{Log: log, Handle: frame, Broken: kill})
//	err = p.Call(ctx, native.MethodConfigure, configuration, &configured)
//
// What a process may do to its host is what the host has checked: a handle that it sends is claimed before anybody
// sees it, numbers that it writes into shared memory are clamped, files that it sends are read and never mapped.
// What it may do to the machine is not limited here: a native plugin is a program of the user, not a sandbox. It gets
// three files, few variables of the environment, no core dump that holds shared memory, and dies with its host; what
// it leaves in its process group dies with it.
//
// Locks, in the order in which they are taken: describer.mu, Runtime.mu.
package spawn
