package component_test

import (
	"context"
	"fmt"
	"os"

	"github.com/rlhost/rlhost"
	"github.com/rlhost/rlhost/sdk/component"
)

// purse looks at the rewards of every trajectory on its way to the learner.
type purse struct {
	component.Stateless
	host component.Host
	out  component.Signal
	sum  float64
}

func (c *purse) Manifest() component.Manifest {
	return component.Manifest{
		Signals: []component.Port{{Name: "trajectories", Payload: "trajectory", Doc: "as they came"}},
		Slots:   []component.Port{{Name: "on_trajectories", Payload: "trajectory", Doc: "full blocks"}},
	}
}

func (c *purse) Configure(decode func(into any) error) error { return decode(&struct{}{}) }

func (c *purse) Start(h component.Host) error {
	c.host, c.out = h, h.Signal("trajectories")
	h.Slot("on_trajectories", c.onTrajectory)
	return nil
}

func (c *purse) onTrajectory(m *component.Message) {
	reward, err := m.Block.Column("reward")
	if err == nil {
		for _, r := range reward.Float32() {
			c.sum += float64(r)
		}
		_, err = c.out.Emit(*m)
	}
	if err != nil {
		c.host.Fail(err)
	}
}

const pipeline = `
rlhost = 1
[run]
name = "purse"
stop = { env_steps = 4096 }
evaluation = { episodes = 1 }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "ppo"
env = "cartpole"
mode = "sync"
[component.purse]
kind = "purse"
[[wire]]
signal = "rollout.trajectories"
slot = "purse.on_trajectories"
mode = "queue"
depth = 64
on_full = "block"
replace = true
[[wire]]
signal = "purse.trajectories"
slot = "batcher.on_trajectories"
mode = "queue"
depth = 64
on_full = "block"
`

// A component of one's own, built into the program that trains: CartPole gives 1 for each env step.
func Example() {
	dir, _ := os.MkdirTemp("", "runs")
	defer os.RemoveAll(dir)

	mine := &purse{} // the pipeline has one instance, so one is enough
	result, err := rlhost.Train(context.Background(), rlhost.Options{Text: pipeline, Set: []string{"run.dir=" + dir},
		Components: map[string]func() component.Component{"purse": func() component.Component { return mine }}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.EnvSteps, mine.sum)
	// Output: 4096 4096
}
