package main

import (
	"fmt"

	"github.com/rlhost/rlhost/core/objects/wire"
	"github.com/rlhost/rlhost/plugins/objects"
	"github.com/rlhost/rlhost/plugins/objects/store"
)

type storeCommand struct {
	Name    string `help:"Name under which programs find it: letters, digits and . _ -; default none, or \"default\" at the default socket."`
	Socket  string `placeholder:"PATH" help:"Socket to serve at; default one in the user's own runtime folder, of its name where it has one."`
	Memory  int    `placeholder:"MIB" help:"Most memory of all objects together, in MiB; default what the machine has."`
	Clients int    `default:"1024" help:"Most clients at a time."`

	Attached bool `help:"Ends when its standard input does: with the program that started it."`
}

// Help describes the purpose of the store.
func (c *storeCommand) Help() string {
	return `Named objects of blocks in shared memory, for programs of the same user: put, get, push, pop, read the latest, without a copy
where the reader wants none. Clients are sdk/objects in Go and rlhost.objects in Python. A client that is killed leaks nothing.
A component of kind objects serves one while a run lasts; rlhost.objects.serve starts one from Python.`
}

// Run serves until it is interrupted.
func (c *storeCommand) Run(p *program) error {
	if c.Memory < 0 || c.Clients < 1 {
		return fail(exitUsage, fmt.Errorf("--memory %d --clients %d: want 0 or more, and 1 or more", c.Memory, c.Clients))
	}
	if c.Name == "" && c.Socket == "" {
		c.Name, c.Socket = "default", wire.DefaultPath()
	}
	server, err := objects.Start(objects.Options{
		Path: c.Socket, Name: c.Name, Sessions: c.Clients, Log: p.logger(), Limits: store.Limits{Bytes: c.Memory << 20},
	})
	if err != nil {
		return err
	}
	return p.serve(server, server.Path(), c.Attached)
}
