package remote

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/rlhost/rlhost/core/registry"
)

// Roots of the names of what programs serve.
const (
	Runs     = "rlhost/runs/"     // Runs + NAME/NUMBER: a run's socket; below it its components with their kinds
	Servers  = "rlhost/servers/"  // Servers + NAME: the socket of a server
	Stores   = "rlhost/stores/"   // Stores + NAME: a store's socket
	Channels = "rlhost/channels/" // Channels + NAME: a channel's socket
)

// AnnouncedTTL is how long names last that Announce has added, after their process was killed.
const AnnouncedTTL = 10 * time.Second

// announcer keeps names in a registry.
type announcer struct {
	names   registry.Names
	options registry.Options
	leases  map[string]registry.Lease
}

// Announce keeps the names that wanted returns, with their values, in the registry of this user's names, while one is served. It returns
// when ctx ends, and the names with it. A TTL of 0 is AnnouncedTTL. A name that another process has, and that is not to be replaced, is
// tried again until it is free.
func Announce(ctx context.Context, o registry.Options, wanted func() map[string]string) {
	client := NewClient(SocketPath())
	o.TTL = cmp.Or(o.TTL, AnnouncedTTL)
	a := &announcer{names: client, options: o, leases: map[string]registry.Lease{}}
	tick := time.NewTicker(o.TTL / 4)
	defer tick.Stop()
	for {
		a.renew(ctx, wanted())
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

// renew makes the registry have the names that are wanted. Where nobody serves one, that is for the next time. The end of ctx does not
// interrupt it: a name whose lease is not known would outlast its process.
func (a *announcer) renew(ctx context.Context, wanted map[string]string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	for name, value := range wanted {
		if err := a.have(ctx, name, value); err != nil && !isNames(err) {
			return
		}
	}
	a.drop(ctx, wanted)
}

// have renews one name, or adds it where it is not this process's any more.
func (a *announcer) have(ctx context.Context, name, value string) error {
	if lease, ok := a.leases[name]; ok {
		if err := a.names.Renew(ctx, name, lease, a.options.TTL); !errors.Is(err, registry.ErrLost) {
			return err
		}
		delete(a.leases, name)
	}
	lease, err := a.names.Add(ctx, name, value, a.options)
	if err == nil {
		a.leases[name] = lease
	}
	return err
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
