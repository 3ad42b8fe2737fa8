// Package guest runs instances of a module: their memory and their calls, the functions that the host offers them, fuel, faults, and their
// state, saved and forked.
//
//	m := guest.New(file, code, guest.Output{Log: log})
//	err := m.Prepare(ctx, describe)
//	i, err := m.NewInstance(describe)
//	n, err := i.Request(guest.Bind, limit, batch, bindings, tensors)
//
// Time is limited by fuel, which a rewriter adds to the code (internal/meter), never by another goroutine:
// compiled code cannot be preempted, so nothing outside could stop it, and the garbage collector would wait for
// it. Memory is limited by the reservation that the guest's linear memory lives in (internal/linear).
//
// It does not know the meaning of the calls of environments and of components; packages wasm and component do.
package guest
