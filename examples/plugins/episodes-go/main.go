// Episodes-go is the logger of package episodes as a WebAssembly module. See README.md.
package main

import (
	"github.com/rlhost/rlhost/examples/plugins/episodes-go/episodes"
	"github.com/rlhost/rlhost/sdk/component/module"
)

func init() { module.Serve("episodes@1", episodes.New) }

func main() {}
