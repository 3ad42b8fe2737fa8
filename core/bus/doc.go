// Package bus connects signals to slots: a signal is a named output of a component, a slot the function that a
// signal calls, a connection links them with its mode, depth, overflow policy and counters.
//
//	requests := bus.NewSignal(rollout, "requests", "request", arenas)
//	serve := bus.NewSlot(inference, "requests", "request", func(m *hostabi.Message) { act(m.Handle, m.T) })
//	c, err := bus.Connect(requests, serve, bus.Options{Mode: bus.Queue, Depth: 64, Overflow: bus.Block})
//	err = requests.Emit(hostabi.Message{Handle: h, T: t})
//	c.Disconnect()
//
// Connections are made, changed and ended at any time, from any goroutine, while messages flow:
//
//	err = bus.Redirect(bus.Way{Connection: c, To: slot}) // messages go to another slot, pending ones too
//	err = bus.MoveSignal(c, signal)                      // another signal replaces this one
//
// No message is lost, delivered twice or overtaken by a later one of its signal.
//
// Emit runs no slot: it queues the message on the loop of each receiving component, also on the emitter's own. It
// never waits. When a connection with overflow policy Block is full, the message is parked there and the data lane
// of the sending component is paused until half of the connection's depth is free again; slots never block, and
// both components still handle control messages. A receiving loop that has stopped takes no messages, so it keeps
// its senders paused until it is closed or the connection ends.
//
// For each delivery of a message that carries a block, the bus holds the block (see Retainer) from Emit until
// the slot has returned or the message was dropped. A slot that wants the block for longer takes a lease.
//
// A signal remembers its newest message, without its block. A new connection in mode Latest gets that at once, if the
// block is still valid: so a component that joins late has the newest weights.
//
// Observers connect with mode All, overflow DropNewest, a small depth and Unclaimed, to a slot on their own loop: such
// a connection never parks a message and claims no block (BenchmarkEmit_Watched).
//
// Order: a slot gets the messages that one goroutine emits on one signal in the order of emission, whatever the
// mode. Between components on one loop this holds for all their emissions together.
//
// Locks, in the order in which they are taken: Signal.mu, parking.mu, Connection.mu, then Slot.mu, memory.mu or the
// mutex of a loop.Loop. None is held while a slot or a Retainer runs, or while waiting for a loop. Two of a kind are
// held in two places: MoveSignal locks both signals and both parkings, and releases the first when it does not get the
// second at once; Redirect locks the connections that it redirects, all of which lead to the loop that it runs on,
// where no other Redirect can run. Emit takes no lock on the list of connections.
//
// The bus does not know arenas, and only compares payload types; messages to other processes leave through slots
// of the component that owns the ring.
package bus
