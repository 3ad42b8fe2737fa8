// Curriculum-go is the component of package curriculum as a WebAssembly module. See README.md.
package main

import (
	"github.com/rlhost/rlhost/examples/plugins/curriculum-go/curriculum"
	"github.com/rlhost/rlhost/sdk/component/module"
)

func init() { module.Serve("curriculum@1", curriculum.New) }

func main() {}
