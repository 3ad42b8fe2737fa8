package component_test

import (
	"fmt"

	"github.com/rlhost/rlhost/sdk/component"
)

// Emit returns the outcome of a message. Here each block goes to the batcher, and to a signal that nothing is wired to.
func ExampleOutcome() {
	var trajectories, spare component.Signal
	outcomes := map[component.Outcome]int{}
	onTrajectory := func(m *component.Message) error {
		for _, signal := range []component.Signal{trajectories, spare} {
			outcome, err := signal.Emit(*m)
			if err != nil {
				return err
			}
			outcomes[outcome]++
		}
		return nil
	}
	train(&component.Declared{
		Signals: []component.Output{
			{Name: "trajectories", Payload: "trajectory", Bind: &trajectories},
			{Name: "spare", Payload: "trajectory", Bind: &spare},
		},
		Slots: []component.Input{{Name: "on_trajectories", Payload: "trajectory", Handle: onTrajectory}},
	})
	fmt.Println("sent:", outcomes[component.Sent], "dropped:", outcomes[component.Dropped])
	// Output:
	// ended: env_steps
	// sent: 8 dropped: 8
}
