package component_test

import (
	"fmt"

	"github.com/rlhost/rlhost/sdk/component"
)

// Metrics of a component appear next to the run's own, in its metrics.jsonl, in TensorBoard and anywhere else that it logs.
func ExampleHost_metrics() {
	var out component.Signal
	var reward component.Column
	var blocks component.Counter
	var last component.Gauge
	var rewards component.Histogram
	ended := train(&component.Declared{
		Signals: []component.Output{{Name: "trajectories", Payload: "trajectory", Bind: &out}},
		Slots: []component.Input{{Name: "on_trajectories", Payload: "trajectory", Columns: []component.Want{{Name: "reward", Into: &reward}},
			Handle: func(m *component.Message) error {
				blocks.Add(1)
				last.Set(float64(m.PolicyVersion))
				for _, r := range reward.Float32() {
					rewards.Observe(float64(r))
				}
				return component.Pass(out, m)
			}}},
		OnStart: func(h component.Host) {
			blocks, last, rewards = h.Counter("mine/blocks"), h.Gauge("mine/policy_version"), h.Histogram("mine/reward")
		},
	})
	metrics := ended.Pipeline().Stats()
	seen := metrics.Histogram("mine/reward").Snapshot()
	fmt.Println(metrics.Counter("mine/blocks").Value(), metrics.Gauge("mine/policy_version").Value())
	fmt.Println(seen.Count, seen.Min, seen.Max)
	// Output:
	// ended: env_steps
	// 8 7
	// 4096 1 1
}
