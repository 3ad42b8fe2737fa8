package main

import (
	"github.com/rlhost/rlhost/examples/plugins/testdata/whole/whole"
	"github.com/rlhost/rlhost/sdk/component/module"
)

func init() { module.Serve("whole@1", whole.New) }

func main() {}
