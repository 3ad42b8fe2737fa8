package module_test

import (
	"fmt"

	"github.com/rlhost/rlhost/sdk/component"
	"github.com/rlhost/rlhost/sdk/component/module"
)

// newRelay returns an unconfigured component that passes blocks on.
func newRelay() component.Component {
	var out component.Signal
	return &component.Declared{
		Signals: []component.Output{{Name: "trajectories", Payload: "trajectory", Doc: "as they came", Bind: &out}},
		Slots: []component.Input{{Name: "on_trajectories", Payload: "trajectory", Doc: "full blocks", Handle: func(m *component.Message) error {
			return component.Pass(out, m)
		}}},
	}
}

// A module calls Serve in init. In a program that is no module Serve does nothing, so tests in the same package use the component
// directly.
func ExampleServe() {
	module.Serve("relay@1", newRelay)

	for _, port := range newRelay().Manifest().Slots {
		fmt.Printf("%s takes %s: %s\n", port.Name, port.Payload, port.Doc)
	}
	// Output: on_trajectories takes trajectory: full blocks
}
