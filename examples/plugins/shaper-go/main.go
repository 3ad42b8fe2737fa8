// Shaper-go is a reward shaper as a WebAssembly module. See README.md.
package main

import (
	"github.com/rlhost/rlhost/examples/plugins/shaper-go/shaper"
	"github.com/rlhost/rlhost/sdk/component/module"
)

func init() { module.Serve("shaper@1", shaper.New) }

func main() {}
