// Package component says what every node of a pipeline does, and what the host offers it, not how a
// particular one does it.
//
// A component is configured, started with a Host, wired by the pipeline, and then lives on an event loop: its
// slots run one at a time there. It speaks by signals that it declared in its manifest.
//
//	func (c *Batcher) Manifest() component.Manifest {
//		return component.Manifest{
//			Signals: []component.Port{{Name: "datasets", Payload: component.PayloadDataset}},
//			Slots:   []component.Port{{Name: "on_trajectories", Payload: component.PayloadTrajectory}},
//		}
//	}
//
//	func (c *Batcher) Start(h *component.Host) error {
//		c.out = h.Signal("datasets")
//		h.Slot("on_trajectories", c.onTrajectories)
//		return nil
//	}
//
// The calls of a component come in this order, those in parentheses if it implements the interface:
//
//	Configure         once; (Flowing) Flow, (Watched) Looks and Manifest after it
//	Start             once, before the loop runs; (Remote) from here to Stop, on any goroutine
//	Restore           at most once, before the first slot
//	slots, timers     on the loop, one at a time; between two of them (Watched) Altered, at any time (Holder) Holds
//	(Recovering)      SaveState at dataset boundaries, on any goroutine
//	Snapshot          on the loop, between two slots; (Pauser) at rest
//	(Pauser)          Pause, its rested, then Resume, or Waiting and no further slot
//	(EnvRunner)       PrepareEnvs on any goroutine; Commit, Cancel and Settle of what it returns on the loop; Close
//	Stop              once, after the loop has ended, also after a failed Start
//
// A replacement is another instance that gets Configure, Start and its predecessor's Snapshot in Restore while the
// predecessor is at rest, takes over its credits (Host.TakeOver), and gets what was Waiting in its slots.
//
// What the host must know of a payload is its row in payload.go; other payloads need none.
//
// Package pipeline reads files and builds graphs; plugins/wasm runs guests.
package component
