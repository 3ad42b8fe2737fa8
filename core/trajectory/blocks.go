package trajectory

import (
	"fmt"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/hostabi"
)

// Lease claims the committed trajectory that a handle names. The view is valid until the lease is released.
func Lease(arenas *arena.Set, h hostabi.Handle) (Trajectory, arena.Lease, error) {
	a, schema, err := trajectoriesOf(arenas, h)
	if err != nil {
		return Trajectory{}, arena.Lease{}, err
	}
	lease, err := a.Lease(h)
	if err != nil {
		return Trajectory{}, arena.Lease{}, err
	}
	return Trajectory{Schema: schema, Mem: lease.Bytes()}, lease, nil
}

// Borrowed returns the view of a trajectory that is still being written, for a component that was asked to write
// part of it. It is valid until the requester is answered; see arena.Arena.Loaned.
func Borrowed(arenas *arena.Set, h hostabi.Handle) (Trajectory, error) {
	a, schema, err := trajectoriesOf(arenas, h)
	if err != nil {
		return Trajectory{}, err
	}
	mem, err := a.Loaned(h)
	return Trajectory{Schema: schema, Mem: mem}, err
}

func trajectoriesOf(arenas *arena.Set, h hostabi.Handle) (*arena.Arena, *Schema, error) {
	a, err := arenas.Of(h)
	if err != nil {
		return nil, nil, err
	}
	schema, ok := a.Schema().(*Schema)
	if !ok {
		return nil, nil, fmt.Errorf("arena %s holds no trajectories", a.Name())
	}
	return a, schema, nil
}
