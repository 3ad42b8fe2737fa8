// Package process serves native plugins in Go: programs whose component runs in a separate process and shares blocks and
// messages with the host.
//
// The component is written against sdk/component, whose documentation shows a whole one. The program is
//
//	func main() {
//		process.Serve(process.Plugin{Components: map[string]func() component.Component{
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
//
// # What is the same as in the host
//
// All that sdk/component promises. Loans, leases and claims are made in memory shared with the host, without a request to
// it. A synchronous training ends with the same parameters, bit for bit, as with the component built in.
//
// # What is different
//
// Log and printed text go to the host's log. Metrics reach the host ten times a second, and before a snapshot. Host.Arena
// asks the host and waits for the answer.
//
// A panic in a slot ends the process, as Host.Fail does, after reporting the reason to the host. When the process dies
// in any way, the host releases its claims, starts it again with the last state that it has, and sends the unfinished
// messages again: a slot may see a message twice, but only after such a death.
//
// The process ends with its host, even in the middle of a call. It has no timeouts, so it can stop in a debugger:
// `rlhost plugin attach NAME` starts one, and the host does not call the process stalled.
//
// Plugin.Kinds takes components of the host's own interface, core/component: with policies, dataset boundaries, requests
// about blocks on loan, and Pause. Their Host.Env has the environments that Plugin.Load can load, and only describes the
// others.
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
