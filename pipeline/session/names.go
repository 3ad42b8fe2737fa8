package session

import (
	"context"

	"github.com/rlhost/rlhost/core/registry"
	"github.com/rlhost/rlhost/core/registry/remote"
)

// announce keeps the names of the run and its components. It returns when ctx ends, and the names with it.
func (l *live) announce(ctx context.Context, socket string) {
	remote.Announce(ctx, registry.Options{Replace: true}, func() map[string]string {
		root := remote.Runs + l.Run.ID()
		list := map[string]string{root: socket}
		for _, c := range l.Pipeline.Graph().Components {
			for i := range c.Count {
				list[root+"/"+c.InstanceName(i)] = c.Kind
			}
		}
		return list
	})
}
