// Components-go is a native plugin of the components in Go in the neighbouring folders, where each is a WebAssembly module too.
// See README.md.
package main

import (
	"github.com/rlhost/rlhost/examples/plugins/chooser-go/chooser"
	"github.com/rlhost/rlhost/examples/plugins/curriculum-go/curriculum"
	"github.com/rlhost/rlhost/examples/plugins/episodes-go/episodes"
	"github.com/rlhost/rlhost/examples/plugins/opponent-go/opponent"
	"github.com/rlhost/rlhost/examples/plugins/shaper-go/shaper"
	"github.com/rlhost/rlhost/sdk/component"
	"github.com/rlhost/rlhost/sdk/process"
)

func main() {
	process.Serve(process.Plugin{
		Components: map[string]func() component.Component{"chooser": chooser.New, "curriculum": curriculum.New, "episodes": episodes.New,
			"opponent": opponent.New, "shaper": shaper.New},
		Docs: map[string]string{
			"chooser":    "passes on the blocks with the highest mean reward",
			"curriculum": "raises a reset parameter with the success",
			"episodes":   "logs episodes and makes metrics of them",
			"opponent":   "plays Connect Four by rules",
			"shaper":     "scales, shifts and clips what is learned from",
		},
	})
}
