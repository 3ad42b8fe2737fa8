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
// After a death the messages that the process had sent count, blocks that it had on loan are free again, its leases
// are given back, and its successor gets: the newest state that the host took or gave, the newest message of each
// slot with a connection of mode latest, and everything that was not finished with, in order; so a message may be
// handled twice, and the effect of one that was finished after the state was taken is lost. Four counters tell,
// for each component: process/deaths/NAME; process/restarts/NAME; process/lost_messages/NAME, which are those finished with since the
// state that the successor began with, but for the one that the process was at when that was taken at a boundary; or, if there was none, those whose blocks the dead process still held; and
// process/rejected_messages/NAME.
//
// Environments live in processes as well, modules of WebAssembly that are kept apart and those of native plugins alike:
//
//	p, err := r.LoadEnv(ctx, program, process.EnvLoadOptions{Source: native.EnvSource{Use: "CartPole-v1"}, Workers: 2})
//	env, err := p.NewEnv(env.Options{Envs: 64})
//
// Each process of a batch owns some neighbouring environments of the blocks that are bound and writes there itself. The
// goroutine that calls the batch waits for the processes itself. One that dies costs its environments the step they
// were in; see env.Fault.
//
// What a process may do to its host is what the host has checked: a handle that it sends is claimed before anybody
// sees it, numbers that it writes into shared memory are clamped, files that it sends are read and never mapped.
// What it may do to the machine is not limited here: a native plugin is a program of the user, not a sandbox. It gets
// three files, few variables of the environment, no core dump that holds shared memory, and dies with its host; what
// it leaves in its process group dies with it.
//
// Locks, in the order in which they are taken: clerk.mu, a link's lock of receiving or that of a set of arenas,
// Runtime.mu, proxy.mu, life.mu, a link's lock of sending.
package process
