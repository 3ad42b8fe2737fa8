// Shaper-go is the reward shaper of process-go as a WebAssembly module: one source for all runtimes. See README.md.
package main

import (
	"github.com/rlhost/rlhost/examples/plugins/process-go/shaper"
	"github.com/rlhost/rlhost/sdk/component/module"
)

func init() { module.Serve("shaper@1", shaper.New) }

func main() {}
