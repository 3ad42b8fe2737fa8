// Package rollout is the component that runs environments.
//
// It holds one guest instance and a few blocks for each split. A split's turn: bind a free block, put the carried
// observation into row 0, ask inference to act on a row, step the environments with what comes back, ask again;
// after the last row ask for its value alone, commit the block, emit it, carry the last observation over, and
// wait for a free block. Splits take turns independently, so that one is stepped while inference serves another.
//
//	kinds := map[string]func() component.Component{"rollout": rollout.New}
//
// A fault costs the split's unfinished block: the guest is renewed, its environments restart, and the loss is
// counted, until the restart budget is spent. A process that dies costs its environments one row: it is marked as
// belonging to no episode, the episode before it is cut as by a truncation and not announced, the environments begin
// again, and all others continue. core/env says what an environment is, a runtime where it comes from.
//
// The environments can be exchanged for environments of another version while they run (component.EnvRunner). A change is
// prepared during the run: instances are made, and observe something in their own block. Each split then goes over at
// its own boundary:
//
//   - now: its unfinished block is dropped, and counted;
//   - step: after the step under way, whose last observations become final_obs where an episode is cut off;
//   - trajectory: between two blocks; running episodes end truncated in the last row of the first, with V(obs[T]);
//   - episode: each environment when its episode ends. Until all have gone both versions step side by side, each in
//     its own block, and the rows that count are copied. A trial does so for some of the environments.
//
// A split that waits for a block goes over at once. The old environments are kept until the change is settled: it can
// be taken back, and a fault on probation takes it back.
//
// With environments in other processes whose steps take long, the loop serves the other splits meanwhile; not in
// synchronous mode, where everything happens in the same order each time.
//
// split.go has a split's state, step.go a step of one row, turn.go the turn from a free block to the emitted one,
// fault.go the outcomes of faults; change.go has a change of the whole component, move.go a split's part in it.
package rollout
