// Package rollout is the component that runs environments.
//
// It holds one guest instance and a few blocks for each split. A split's turn: bind a free block, put the carried
// observation into row 0, ask inference to act on a row, step the environments with what comes back, ask again;
// after the last row ask for its value alone, commit the block, emit it, carry the last observation over, and
// wait for a free block. Splits take turns independently, so that one is stepped while inference serves another.
//
//	kinds := map[string]func() component.Component{"rollout": rollout.New}
//
// A fault costs the split's unfinished block: the guest is renewed, its environments restart, and what was lost is
// counted, until the restart budget is spent. What environments are is core/rollout's business, where they come
// from a runtime's.
package rollout
