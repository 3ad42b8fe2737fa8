// Package process is the runtime of native plugins: programs in any language that run as child processes and share
// blocks and messages with the host through memory. go-plugin starts them and carries control calls; data goes
// through rings and arenas.
//
//	r, err := process.New(process.Options{Log: log})
//	defer r.Close()
//	c, err := r.Component(ctx, process.Program{Name: "shaper", Path: "bin/shaper"}, "shaper")
//	m := c.Manifest() // as the program describes it
//
// A component of this runtime is a proxy: it lives on a loop of the host, sends what its slots get to the process
// and emits what comes back. When the process dies, stalls or breaks the protocol, the proxy cleans up behind it
// and starts another one; see Program.Restarts.
//
// What a process may do to its host is what the host has checked: a handle that it sends is claimed before anybody
// sees it, numbers that it writes into shared memory are clamped, files that it sends are read and never mapped.
// What it may do to the machine is not limited here: a native plugin is a program of the user, not a sandbox.
package process
