// Package process serves native plugins in Go: programs whose component, an ordinary
// component.Component, runs in a process of its own and shares blocks and messages with the host.
//
// A whole plugin is a component and a main:
//
//	type clipper struct {
//		limit struct {
//			Reward float32 `toml:"reward"`
//		}
//		h   *component.Host
//		out *bus.Signal
//	}
//
//	func (c *clipper) Manifest() component.Manifest { ... }                      // ports
//	func (c *clipper) Configure(decode func(any) error) error { return decode(&c.limit) }
//	func (c *clipper) Start(h *component.Host) error {
//		c.h, c.out = h, h.Signal("trajectories")
//		h.Slot("on_trajectories", c.onTrajectory)
//		return nil
//	}
//	func (c *clipper) onTrajectory(m *hostabi.Message) {
//		tr, lease, err := trajectory.Lease(c.h.Arenas, m.Handle)
//		if err != nil {
//			c.h.Fail(err)
//			return
//		}
//		defer lease.Release()
//		clip(tr.Float32(trajectory.Reward), c.limit.Reward)
//		_ = c.out.Emit(*m)
//	}
//	...
//	func main() {
//		process.Serve(process.Plugin{Kinds: map[string]func() component.Component{
//			"clipper": func() component.Component { return &clipper{} },
//		}})
//	}
//
// and in the pipeline file
//
//	[plugin.clip]
//	path = "bin/clip"
//
//	[component.clipper]
//	plugin = "clip"
//	reward = 1.0
//
// # What is the same as in the host
//
// The component's life, its host's methods, slots one at a time on one loop, timers, leases and loans, Pause through
// full connections, the meaning of Fail and Stop. The block of a slot's message is claimed while the slot runs. Loans,
// leases and claims are made in memory shared with the host, without a request to it.
//
// # What is different
//
// Host.Env has the environments that Plugin.Load can load, and only describes the others. Host.Log and printed text go
// to the host's log. Metrics reach the host ten times a second, and before a snapshot. A state returned by Snapshot
// travels through a memory file. Host.Arenas.Add asks the host and waits for the answer.
//
// A panic in a slot ends the process, as Host.Fail does, after reporting the reason to the host. When the process dies
// in any way, the host releases its claims, starts it again with the last state that it has, and sends the unfinished
// messages again: a slot may see a message twice, but only after such a death.
//
// The process ends with its host, whatever the component is doing. It has no timeouts, so it can stop in a debugger:
// `rlhost plugin attach NAME` starts one, and the host does not call the process stalled.
//
// # Speed
//
// The loop sleeps on the ring itself: a message wakes it and runs its slot without another goroutine in between. An
// emitted message is in the ring when Emit returns. GOMAXPROCS is left as Go sets it; where host and plugins compete
// for few processors, a component that computes on one goroutine needs no more than 2 (runtime.GOMAXPROCS in main).
//
// Plugin.Load makes the program a worker of environments instead. The names of calls and documents are in
// hostabi/native.
package process
