// Command trylog is a component that logs where it may.
package main

import (
	"github.com/rlhost/rlhost/sdk/component"
	"github.com/rlhost/rlhost/sdk/component/module"
)

func quiet() component.Component {
	return &component.Declared{OnStart: func(h component.Host) {
		h.TryLog().Warn("a component begins", "of", h.Identity().Count)
	}}
}

func init() { module.Serve("quiet@1", quiet) }

func main() {}
