// Opponent-go is the component of package opponent as a WebAssembly module. See README.md.
package main

import (
	"github.com/rlhost/rlhost/examples/plugins/opponent-go/opponent"
	"github.com/rlhost/rlhost/sdk/component/module"
)

func init() { module.Serve("opponent@1", opponent.New) }

func main() {}
