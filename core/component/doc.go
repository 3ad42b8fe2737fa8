// Package component defines the interface between the host and every node of a pipeline.
//
// A component is configured, started with a Host, wired by the pipeline, and then runs on an event loop, one slot
// at a time. It emits the signals that its manifest declares.
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
// The calls of a component come in this order; a call after an interface in parentheses needs that interface:
//
//	Configure         once; (Flowing) Flow, (Warming) BurnInRows, (Watched) Looks and Manifest after it
//	Start             once, before the loop runs; (Remote) from here to Stop, on any goroutine
//	Restore           at most once, before the first slot
//	slots, timers     on the loop, one at a time; between two of them (Watched) Altered, at any time (Holder) Holds
//	(Recovering)      SaveState at dataset boundaries, on any goroutine
//	Snapshot          on the loop, between two slots; (Pauser) while paused
//	(Pauser)          Pause, its rested, then Resume, or Waiting and no further slot
//	(EnvRunner)       PrepareEnvs on any goroutine; Commit, Cancel and Settle of its result on the loop; Close
//	Stop              once, after the loop has ended, also after a failed Start
//
// A replacement is another instance. While its predecessor is paused it gets Configure, Start and the
// predecessor's Snapshot in Restore, takes over its credits (Host.TakeOver), and gets its Waiting messages in its
// slots.
//
// A payload that the host must know has a row in payload.go; other payloads need none.
//
// Package pipeline reads files and builds graphs; plugins/wasm runs guests.
package component
