package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"

	"github.com/rlhost/rlhost/core/cluster"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/loading"
	"github.com/rlhost/rlhost/pipeline/member"
	"github.com/rlhost/rlhost/pipeline/session"
)

type joinCommand struct {
	Address   string `arg:"" optional:"" name:"address" help:"Where the run listens, as HOST:PORT; default the token's."`
	TokenFile string `default:"join.token" placeholder:"FILE" help:"Token of the run: join.token of its folder; default ./join.token."`
	Name      string `help:"Name of this machine in the run; default its own."`
}

// Help describes what a host does.
func (c *joinCommand) Help() string {
	return `Runs until the run ends, or until Ctrl-C or SIGTERM, when the machine leaves. rlhost status lists the machines of a run. At present they are
listed and no more: components run on the machine of rlhost train. The token is a secret, and ends with the process that made it.

  rlhost train --listen 0.0.0.0:4222                  on one machine
  rlhost join --token-file join.token                 on another, with a copy of runs/NAME/NUMBER/join.token`
}

// Run joins.
func (c *joinCommand) Run(p *program) error {
	token, err := c.token()
	if err != nil {
		return betweenHosts(err)
	}
	name, err := os.Hostname()
	if c.Name == "" && err != nil {
		return fail(exitUsage, fmt.Errorf("this machine has no name (%w): give one with --name", err))
	}
	memory, _ := loading.Memory(&graph.Parts{})
	ctx, stop := untilAsked()
	defer stop()
	err = member.Join(ctx, member.JoinOptions{
		Token: token, Name: cmp.Or(c.Name, name), Version: hostabi.Release, Cores: runtime.GOMAXPROCS(0), Memory: uint64(memory), Log: p.logger(),
		Joined: func(name string) {
			fmt.Fprintf(p.out, "joined %s at %s as %s\n", printable(token.Run), token.Address, printable(name))
		},
	})
	return betweenHosts(err)
}

// token reads the file, and puts the address in that was given.
func (c *joinCommand) token() (cluster.Token, error) {
	text, err := os.ReadFile(c.TokenFile)
	var token cluster.Token
	if err == nil {
		token, err = cluster.ParseToken(string(text))
	}
	if err != nil {
		e := control.Errorf(member.CodeToken, "the token in %s: %v", c.TokenFile, err)
		e.Help = "copy join.token from the folder of the run, which rlhost train --listen prints"
		return token, e
	}
	if c.Address == "" {
		return token, nil
	}
	token.Address = strings.TrimPrefix(c.Address, "nats://")
	if _, _, err := net.SplitHostPort(token.Address); err != nil {
		e := control.Errorf(member.CodeReach, "%s is no address: %v", c.Address, err)
		e.Help = "write HOST:PORT, such as 10.0.0.1:4222, or leave it out: the token has one"
		return token, e
	}
	return token, nil
}

// betweenHosts shows the code and the remedy of an error between hosts.
func betweenHosts(err error) error {
	var e *control.Error
	if !errors.As(err, &e) {
		return err
	}
	return fail(exitUsage, fmt.Errorf("error[%s]: %s\n  help: %s", e.Code, printable(e.Reason), e.Help))
}

// listen lets other machines join, with --listen.
func (t *training) listen(s *session.Session) error {
	if t.command.Listen == "" {
		return nil
	}
	run := s.Folder()
	service, err := member.Serve(member.ServiceOptions{
		Address: t.command.Listen, Run: run.ID(), Dir: run.Dir, Version: hostabi.Release, Hosts: t.command.Hosts, Log: t.logger(),
	})
	if err != nil {
		return betweenHosts(err)
	}
	t.hosts.Store(service)
	t.logger().Info("other machines may join", "with", "rlhost join "+service.Address()+" --token-file "+service.TokenFile())
	return nil
}

// joined returns the other machines of the run.
func (t *training) joined() []control.HostStatus { return t.hosts.Load().Hosts() }
