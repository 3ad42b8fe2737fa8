// Process-go is a native plugin that shapes rewards: a component between the rollouts and the batcher. See README.md.
package main

import (
	"github.com/rlhost/rlhost/examples/plugins/process-go/shaper"
	"github.com/rlhost/rlhost/sdk/component"
	"github.com/rlhost/rlhost/sdk/process"
)

func main() {
	process.Serve(process.Plugin{
		Components: map[string]func() component.Component{"reward_shaper": shaper.New},
		Docs:       map[string]string{"reward_shaper": "scales, shifts and clips rewards before they are learned from"},
	})
}
