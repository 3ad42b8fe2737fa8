// Package component says what every node of a pipeline does, what the host offers it, and nothing of how a
// particular one does it.
//
// A component is configured, started with a Host, wired by the pipeline, and then lives on an event loop: its
// slots run one at a time there. It speaks by signals that it declared in its manifest.
//
//	func (c *Batcher) Manifest() component.Manifest {
//		return component.Manifest{
//			Signals: []component.Port{{Name: "datasets", Payload: "dataset"}},
//			Slots:   []component.Port{{Name: "on_trajectories", Payload: "trajectory"}},
//		}
//	}
//
//	func (c *Batcher) Start(h *component.Host) error {
//		c.out = h.Signal("datasets")
//		h.Slot("on_trajectories", c.onTrajectories)
//		return nil
//	}
//
// Reading files and building graphs is package pipeline's; running guests is plugins/wasm's.
package component
