package component_test

import (
	"fmt"
	"time"

	"github.com/rlhost/rlhost/sdk/component"
)

// Timers call a component between its messages, never at the same time. This one ends the run.
func ExampleTimer() {
	var out component.Signal
	train(&component.Declared{
		Signals: []component.Output{{Name: "trajectories", Payload: "trajectory", Bind: &out}},
		Slots: []component.Input{{Name: "on_trajectories", Payload: "trajectory", Handle: func(m *component.Message) error {
			return component.Pass(out, m)
		}}},
		OnStart: func(h component.Host) {
			late := h.After(time.Hour, func() { fmt.Println("an hour has passed") })
			h.After(20*time.Millisecond, func() {
				fmt.Println("stopped before it was due:", late.Stop())
				h.Stop(component.StopWallTime)
			})
		},
	}, "run.stop.env_steps=1_000_000_000")
	// Output:
	// stopped before it was due: true
	// ended: wall_time
}
