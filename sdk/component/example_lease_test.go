package component_test

import (
	"fmt"

	"github.com/rlhost/rlhost/sdk/component"
)

// A block is valid until the slot that it came to returns; a lease keeps it for longer. This component passes blocks on in pairs, and
// keeps the first of each until the second has come.
func ExampleLease() {
	var out component.Signal
	var first component.Lease
	pairs := 0
	onTrajectory := func(m *component.Message) (err error) {
		if first == nil {
			first, err = m.Block.Lease()
			return err
		}
		for _, block := range []component.Block{first, m.Block} {
			if err := component.Pass(out, &component.Message{Block: block}); err != nil {
				return err
			}
		}
		pairs++
		err = first.Release()
		first = nil
		return err
	}
	train(&component.Declared{
		Signals: []component.Output{{Name: "trajectories", Payload: "trajectory", Bind: &out}},
		Slots:   []component.Input{{Name: "on_trajectories", Payload: "trajectory", Handle: onTrajectory}},
	}, "component.rollout.splits=2") // two blocks for each dataset
	fmt.Println(pairs, "pairs")
	// Output:
	// ended: env_steps
	// 8 pairs
}
