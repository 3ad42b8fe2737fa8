// Flicker-go is a wrapper of observations as a WebAssembly module. See README.md.
package main

import (
	"github.com/rlhost/rlhost/examples/plugins/flicker-go/flicker"
	"github.com/rlhost/rlhost/sdk/component/module"
)

func init() { module.Serve("flicker@1", flicker.New) }

func main() {}
