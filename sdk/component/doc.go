// Package component is the SDK for components in Go. The same source can be built into the program, run as a separate
// process (sdk/process), and compiled to a WebAssembly module (sdk/component/module).
//
//	type clipper struct {
//		component.Stateless
//		h   component.Host
//		out component.Signal
//	}
//
//	func (c *clipper) Manifest() component.Manifest {
//		return component.Manifest{
//			Signals: []component.Port{{Name: "trajectories", Payload: "trajectory", Doc: "with clipped rewards"}},
//			Slots:   []component.Port{{Name: "on_trajectories", Payload: "trajectory", Doc: "full blocks"}},
//		}
//	}
//
//	func (c *clipper) Configure(decode func(into any) error) error { return decode(&struct{}{}) }
//
//	func (c *clipper) Start(h component.Host) error {
//		c.h, c.out = h, h.Signal("trajectories")
//		h.Slot("on_trajectories", c.onTrajectory)
//		return nil
//	}
//
//	func (c *clipper) onTrajectory(m *component.Message) {
//		reward, err := m.Block.Writable("reward")
//		if err == nil {
//			for i, r := range reward.Float32() {
//				reward.Float32()[i] = max(-1, min(1, r))
//			}
//			_, err = c.out.Emit(*m)
//		}
//		if err != nil {
//			c.h.Fail(err)
//		}
//	}
//
// Declared makes a component of its parts, without most of that.
//
// A message of 64 bytes names a block of memory that all components share; nothing is copied. A component sees blocks as
// tokens: a Block while the slot of its message runs, a Lease for longer, a Loan to write a new block.
//
// The package imports hostabi alone of the host's. Package plugins/author runs such components in the host.
package component
