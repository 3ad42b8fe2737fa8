package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/registry"
	"github.com/rlhost/rlhost/core/registry/remote"
)

type namesCommand struct {
	Serve namesServeCommand `cmd:"" help:"Serve an empty registry until it is interrupted."`
	Ls    namesLsCommand    `cmd:"" help:"List names with their values."`
	Get   namesGetCommand   `cmd:"" help:"Print the value of a name."`
	Set   namesSetCommand   `cmd:"" help:"Give a name a value."`
	Rm    namesRmCommand    `cmd:"" help:"Delete a name."`
	Watch namesWatchCommand `cmd:"" help:"Print names, then every change, until it is interrupted."`
}

// Help describes what names are for.
func (c *namesCommand) Help() string {
	return `Names are short values under paths, such as ana/pole/worker/3, with which programs of the same user find each other. A name
with a TTL ends unless it is renewed, so that the name of a dead program is gone soon. A client in Go is core/registry/remote.

  rlhost names serve &
  rlhost names set ana/pole/server 127.0.0.1:5000
  rlhost names get ana/pole/server --wait 10s`
}

type namesSocket struct {
	Socket string `placeholder:"PATH" help:"Socket of the registry; default one in the user's own runtime folder."`
}

func (s *namesSocket) path() string { return cmp.Or(s.Socket, remote.SocketPath()) }

// with calls fn with a client. A registry that nobody serves is an error that says how to serve one.
func (s *namesSocket) with(fn func(ctx context.Context, n registry.Names) error) error {
	ctx, stop := untilAsked()
	defer stop()
	client := remote.NewClient(s.path())
	err := errors.Join(fn(ctx, client), client.Close())
	var said *control.Error
	switch {
	case errors.As(err, &said) && said.Code == control.CodeNoJob:
		return fail(exitUsage, fmt.Errorf("error[%s]: nobody serves names at %s\n  help: rlhost names serve", said.Code, printable(s.path())))
	case said != nil:
		return fail(exitUsage, fmt.Errorf("error[%s]: %s", said.Code, printable(said.Reason)))
	}
	return err
}

type namesServeCommand struct {
	namesSocket
	Clients int `default:"1024" help:"Most clients at a time."`
}

// Run serves until it is interrupted.
func (c *namesServeCommand) Run(p *program) error {
	if c.Clients < 1 {
		return fail(exitUsage, fmt.Errorf("--clients %d: want 1 or more", c.Clients))
	}
	verbs := control.Verbs{}
	remote.On(verbs, registry.NewMemory(registry.Limits{}))
	server, err := control.Listen(c.path(), verbs, control.ListenOptions{Clients: c.Clients, Log: p.logger()})
	if err != nil {
		return err
	}
	return p.serve(server, c.path(), false)
}

type namesLsCommand struct {
	namesSocket
	Root string `arg:"" optional:"" help:"List this name and all below it; default all."`
	JSON bool   `help:"Print JSON."`
}

// Run lists names.
func (c *namesLsCommand) Run(p *program) error {
	return c.with(func(ctx context.Context, n registry.Names) error {
		entries, err := n.List(ctx, c.Root)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := p.printEntry(e, c.JSON); err != nil {
				return err
			}
		}
		return nil
	})
}

// printEntry prints a name and its value on a line.
func (p *program) printEntry(e any, asJSON bool) (err error) {
	if asJSON {
		return json.NewEncoder(p.out).Encode(e)
	}
	switch e := e.(type) {
	case registry.Event:
		if e.Kind == registry.Deleted {
			_, err = fmt.Fprintf(p.out, "%s deleted\n", printable(e.Name))
			return err
		}
		return p.printEntry(e.Entry, false)
	case registry.Entry:
		_, err = fmt.Fprintf(p.out, "%s = %s\n", printable(e.Name), printable(e.Value))
	}
	return err
}

type namesGetCommand struct {
	namesSocket
	Name string        `arg:"" help:"Name."`
	Wait time.Duration `placeholder:"TIME" help:"Wait so long for the name, such as 10s; default not at all."`
}

// Run prints a value.
func (c *namesGetCommand) Run(p *program) error {
	return c.with(func(ctx context.Context, n registry.Names) (err error) {
		value := ""
		if c.Wait > 0 {
			late := control.Errorf(remote.CodeUnknown, "%s has no value after %v", c.Name, c.Wait)
			waiting, cancel := context.WithTimeoutCause(ctx, c.Wait, late)
			defer cancel()
			value, err = registry.Wait(waiting, n, c.Name)
		} else {
			value, err = n.Get(ctx, c.Name)
		}
		if err == nil {
			fmt.Fprintln(p.out, printable(value))
		}
		return err
	})
}

type namesSetCommand struct {
	namesSocket
	Name    string        `arg:"" help:"Name."`
	Value   string        `arg:"" help:"Value."`
	TTL     time.Duration `placeholder:"TIME" help:"The name ends after this time, such as 1m; default never."`
	Replace bool          `help:"Replace the value of a name that exists."`
}

// Run gives a name a value.
func (c *namesSetCommand) Run(*program) error {
	return c.with(func(ctx context.Context, n registry.Names) error {
		_, err := n.Add(ctx, c.Name, c.Value, registry.Options{TTL: c.TTL, Replace: c.Replace})
		return err
	})
}

type namesRmCommand struct {
	namesSocket
	Name string `arg:"" help:"Name."`
	All  bool   `help:"Delete all names below it, too."`
}

// Run deletes names.
func (c *namesRmCommand) Run(p *program) error {
	return c.with(func(ctx context.Context, n registry.Names) error {
		if !c.All {
			return n.Delete(ctx, c.Name, 0)
		}
		cleared, err := n.Clear(ctx, c.Name)
		if err == nil {
			fmt.Fprintf(p.out, "%d deleted\n", cleared)
		}
		return err
	})
}

type namesWatchCommand struct {
	namesSocket
	Root string `arg:"" optional:"" help:"Watch this name and all below it; default all."`
	JSON bool   `help:"Print JSON."`
}

// Run prints changes until it is interrupted.
func (c *namesWatchCommand) Run(p *program) error {
	return c.with(func(ctx context.Context, n registry.Names) error {
		for e, err := range n.Watch(ctx, c.Root) {
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				return err
			case e.Kind == registry.Listed:
				continue
			}
			if err := p.printEntry(e, c.JSON); err != nil {
				return err
			}
		}
		return nil
	})
}
