// Chooser-go is the component of package chooser as a WebAssembly module. See README.md.
package main

import (
	"github.com/rlhost/rlhost/examples/plugins/chooser-go/chooser"
	"github.com/rlhost/rlhost/sdk/component/module"
)

func init() { module.Serve("chooser@1", chooser.New) }

func main() {}
