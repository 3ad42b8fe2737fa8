// Package process is what a native plugin in Go is written with: a program whose component, an ordinary
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
// full connections, what Fail and Stop mean. A block that a slot's message carries is claimed while the slot runs. A
// loan, a lease and a claim are made by this process alone, in memory that it shares with the host, without asking.
//
// # What is different
//
// Host.Env has the environments that Plugin.Load can load, and only describes the others. Host.Log and whatever is
// printed go to the host's log. Metrics reach the host ten times a second, and before a snapshot. A state returned by Snapshot
// travels through a memory file. Host.Arenas.Add asks the host and waits for the answer.
//
// A panic in a slot ends the process, as Host.Fail does, after the host was told why. When the process dies in any
// way, the host takes back what it held, starts it again with the last state that it has, and sends it the messages
// that it had not finished with once more: a slot may see the same message again, but only after such a death.
//
// The process ends with its host, whatever the component is doing. Nothing in it gives up after a time, so it can stand
// still in a debugger: `rlhost plugin attach NAME` starts one, and the host does not call the process stalled.
//
// # Speed
//
// The loop sleeps on the ring itself: a message wakes it and runs its slot without another goroutine in between. What
// a slot emits is in the ring when Emit returns. GOMAXPROCS is left as Go sets it; where host and plugins compete for
// few processors, a component that computes on one goroutine needs no more than 2 (runtime.GOMAXPROCS in main).
//
// Plugin.Load makes the program a worker of environments instead. The names of calls and documents are in
// hostabi/native.
package process
