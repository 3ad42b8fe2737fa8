package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/channel"
	"github.com/rlhost/rlhost/core/channel/remote"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/ipc"
)

type channelCommand struct {
	Serve channelServeCommand `cmd:"" help:"Serve a new channel until it is interrupted."`
	Ls    channelLsCommand    `cmd:"" help:"List the channels that are served."`
	Stat  channelStatCommand  `cmd:"" help:"Print what a channel has and has done, as JSON."`
	Close channelCloseCommand `cmd:"" help:"Close a channel: callers that wait for items get what is left."`
}

// Help describes what channels are for.
func (c *channelCommand) Help() string {
	return `A channel is a queue of items with keys and weights, for programs of the same user on this machine, which find it by its name. Clients
are rlhost.Channel in Python, whose create serves one by itself, and core/channel/remote in Go. An item is taken once; a client that is
killed loses what it held, and stat tells how many items that were.

  rlhost channel serve jobs --maxsize 1000 &
  rlhost channel stat jobs`
}

type channelServeCommand struct {
	Name    string `arg:"" help:"Name of the channel: letters, digits and . _ -"`
	Maxsize int    `help:"Most items of each key; 0 is any number."`
	Memory  int    `placeholder:"MIB" help:"Most memory of items that wait, in MiB; default 1024."`
	Bytes   int64  `placeholder:"BYTES" help:"The same in bytes."`
	Clients int    `default:"1024" help:"Most clients at a time."`

	Attached bool `help:"Ends when its standard input does: with the program that started it."`
}

// Run serves until it is interrupted.
func (c *channelServeCommand) Run(p *program) error {
	if c.Maxsize < 0 || c.Memory < 0 || c.Bytes < 0 || c.Clients < 1 {
		return fail(exitUsage, fmt.Errorf("--maxsize %d --memory %d --bytes %d --clients %d: want 0 or more, and 1 or more clients", c.Maxsize, c.Memory, c.Bytes, c.Clients))
	}
	limits := channel.Limits{Items: c.Maxsize, Bytes: cmp.Or(c.Bytes, int64(c.Memory)<<20)}
	server, err := remote.Serve(remote.Options{Name: c.Name, Limits: limits, Clients: c.Clients, Log: p.logger()})
	if errors.Is(err, ipc.ErrInUse) {
		return fail(exitUsage, fmt.Errorf("there is a channel %s already: rlhost channel stat %s", c.Name, c.Name))
	}
	if err != nil {
		return coded(err)
	}
	return p.serve(server, server.Path(), c.Attached)
}

type channelLsCommand struct {
	JSON bool `help:"Print JSON."`
}

// Run lists channels.
func (c *channelLsCommand) Run(p *program) error {
	names := remote.List()
	if c.JSON {
		return json.NewEncoder(p.out).Encode(names)
	}
	for _, name := range names {
		fmt.Fprintln(p.out, name)
	}
	return nil
}

type channelStatCommand struct {
	Name string `arg:"" help:"Name of the channel."`
	Key  string `default:"default" help:"Key to tell of."`
}

// Run prints a status.
func (c *channelStatCommand) Run(p *program) error {
	return withChannel(c.Name, func(ctx context.Context, x *remote.Client) error {
		stat, err := x.Stat(ctx, c.Key)
		if err != nil {
			return err
		}
		e := json.NewEncoder(p.out)
		e.SetIndent("", "  ")
		return e.Encode(stat)
	})
}

type channelCloseCommand struct {
	Name string `arg:"" help:"Name of the channel."`
}

// Run closes a channel.
func (c *channelCloseCommand) Run(*program) error {
	return withChannel(c.Name, func(ctx context.Context, x *remote.Client) error { return x.Stop(ctx) })
}

// withChannel calls fn with a client. A channel that nobody serves is an error that says how to serve it.
func withChannel(name string, fn func(ctx context.Context, c *remote.Client) error) error {
	ctx, stop := untilAsked()
	defer stop()
	client, err := remote.Connect(name)
	if err != nil {
		return coded(err)
	}
	return coded(errors.Join(fn(ctx, client), client.Close()))
}

// coded returns an error of a channel with its code as all have it.
func coded(err error) error {
	var e *control.Error
	if errors.As(err, &e) {
		return fail(exitUsage, fmt.Errorf("error[%s]: %s", e.Code, printable(e.Reason)))
	}
	return err
}
