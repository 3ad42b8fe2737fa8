package session

import (
	"context"
	"time"

	"github.com/rlhost/rlhost/core/registry"
	"github.com/rlhost/rlhost/core/registry/remote"
)

const (
	// namesRoot begins the names of runs, ROOT/NAME/NUMBER with their socket as the value, and of their components, with their kind.
	namesRoot = "rlhost/runs/"
	// namesTTL is how long the names of a run last that has been killed.
	namesTTL = 10 * time.Second
	// namesEvery is how often they are renewed, and looked for where nobody serves names.
	namesEvery = namesTTL / 4
)

// announcer keeps the names of a run and its components in the registry of this user's names, while one is served.
type announcer struct {
	live   *live
	socket string
	names  registry.Names
	leases map[string]registry.Lease
}

// announce returns when ctx ends, and the names with it.
func (l *live) announce(ctx context.Context, socket string) {
	client := remote.NewClient(remote.SocketPath())
	a := &announcer{live: l, socket: socket, names: client, leases: map[string]registry.Lease{}}
	tick := time.NewTicker(namesEvery)
	defer tick.Stop()
	for {
		a.renew(ctx)
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		a.drop(limited, nil)
		cancel()
		_ = client.Close() // of a registry that may have gone
		return
	}
}

// wanted returns the names and their values.
func (a *announcer) wanted() map[string]string {
	root := namesRoot + a.live.Run.ID()
	list := map[string]string{root: a.socket}
	for _, c := range a.live.Pipeline.Graph().Components {
		for i := range c.Count {
			list[root+"/"+c.InstanceName(i)] = c.Kind
		}
	}
	return list
}

// renew makes the registry have the names that there are. Where nobody serves one, that is for the next time.
func (a *announcer) renew(ctx context.Context) {
	wanted := a.wanted()
	for name, value := range wanted {
		if lease, ok := a.leases[name]; ok && a.names.Renew(ctx, name, lease, namesTTL) == nil {
			continue
		}
		lease, err := a.names.Add(ctx, name, value, registry.Options{TTL: namesTTL, Replace: true})
		if err != nil {
			clear(a.leases)
			return
		}
		a.leases[name] = lease
	}
	a.drop(ctx, wanted)
}

// drop deletes the names that are not wanted.
func (a *announcer) drop(ctx context.Context, wanted map[string]string) {
	for name, lease := range a.leases {
		if _, ok := wanted[name]; !ok {
			_ = a.names.Delete(ctx, name, lease) // else it ends with its time
			delete(a.leases, name)
		}
	}
}
