package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/cluster"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/members"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/loading"
	"github.com/rlhost/rlhost/pipeline/member"
	"github.com/rlhost/rlhost/pipeline/placement"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
)

type joinCommand struct {
	Address   string        `arg:"" optional:"" name:"address" help:"Where the run listens, as HOST:PORT; default the token's."`
	TokenFile string        `default:"join.token" placeholder:"FILE" help:"Token of the run: join.token of its folder; default ./join.token. A pattern such as runs/cartpole/*/join.token takes the newest."`
	Wait      time.Duration `placeholder:"DURATION" help:"Wait so long for the token and for the run to answer, where a scheduler starts both."`
	Name      string        `help:"Name of this machine in the run; default its own."`
	Creds     string        `placeholder:"FILE" help:"Credentials for the servers of a cluster of yours, where the run is in one."`
	TLSCA     string        `name:"tls-ca" placeholder:"FILE" help:"Authority that has signed the certificate of those servers; default the machine's own."`
	Slots     *int          `placeholder:"N" help:"Instances, or pairs of a group, that this machine may have; default one for each processor."`
	CacheMost table.Size    `name:"cache-limit" default:"4GiB" placeholder:"SIZE" help:"Most bytes of modules and data of runs that this machine keeps in the user's cache folder; what is used stays. Default 4GiB."`
	Native    bool          `name:"allow-native" help:"Let native plugins that the run names run here: programs of this machine, as this user."`
	Allow     []string      `placeholder:"sha256:DIGEST" sep:"none" help:"Let the native plugin of that program or script run here, and no other. May be repeated."`
	Label     []string      `placeholder:"KEY=VALUE" sep:"none" help:"Label of this machine for rules of place, such as gpu=h100. May be repeated."`
}

// Help describes what a host does.
func (c *joinCommand) Help() string {
	return `Runs until the run ends, or until Ctrl-C or SIGTERM, when the machine leaves. rlhost status lists the machines of a run. Components
whose place names this machine run here. The token is a secret, and ends with the process that made it.

  rlhost train --listen 0.0.0.0:4222                  on one machine
  rlhost join --token-file join.token                 on another, with a copy of runs/NAME/NUMBER/join.token`
}

// Run joins.
func (c *joinCommand) Run(p *program) (err error) {
	name, err := os.Hostname()
	if c.Name == "" && err != nil {
		return fail(exitUsage, fmt.Errorf("this machine has no name (%w): give one with --name", err))
	}
	slots, labels, err := c.offer()
	if err != nil {
		return fail(exitUsage, err)
	}
	programs, err := c.programs()
	if err != nil {
		return fail(exitUsage, err)
	}
	memory, _ := loading.Memory(&graph.Parts{})
	cache, err := c.cache(p)
	if err != nil {
		return fail(exitUsage, err)
	}
	ctx, stop := untilAsked()
	defer stop()
	parts, engines := builtin.New(builtin.Options{Log: p.logger(), Compiler: compilerCommand})
	defer func() { err = errors.Join(err, engines.Close()) }()
	o := member.JoinOptions{
		Parts: parts, Cache: cache, Programs: programs, Creds: c.Creds, CA: c.TLSCA,
		Name: cmp.Or(c.Name, name), Version: hostabi.Release, Kernels: builtin.Kernels(), Cores: runtime.GOMAXPROCS(0), Memory: uint64(memory),
		Slots: slots, Labels: labels, Log: p.logger(), Called: ppo.NewLearns(learnsHere).Handle,
	}
	began, told := time.Now(), false
	for {
		err = c.join(ctx, p, o)
		if !c.waits(err, began) {
			return betweenHosts(err)
		}
		if !told {
			p.logger().Info("waiting for the run", "token", c.TokenFile, "because", err)
			told = true
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(askAgain):
		}
	}
}

// keepFor is how long files of runs that nobody uses are kept.
const keepFor = 30 * 24 * time.Hour

// cache returns the folder of files of runs, without what is too old, and says how large it is.
func (c *joinCommand) cache(p *program) (*member.Cache, error) {
	folder, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	cache := &member.Cache{Dir: filepath.Join(folder, "rlhost", "joined"), Limit: int64(c.CacheMost), Age: keepFor}
	removed, left, err := cache.Tidy(0)
	if err != nil {
		return nil, err
	}
	if left+removed > 0 {
		p.logger().Info("files of runs that this machine has joined", "folder", cache.Dir, "has", text.Short(float64(left))+"B", "removed", text.Short(float64(removed))+"B")
	}
	return cache, nil
}

// askAgain is how often a machine that waits looks for its run.
const askAgain = 200 * time.Millisecond

// waits reports whether a run that was not there may still come.
func (c *joinCommand) waits(err error, began time.Time) bool {
	var e *control.Error
	return errors.As(err, &e) && (e.Code == member.CodeToken || e.Code == member.CodeReach) && time.Since(began) < c.Wait
}

func (c *joinCommand) join(ctx context.Context, p *program, o member.JoinOptions) (err error) {
	if o.Token, err = c.token(); err != nil {
		return err
	}
	o.Joined = func(name string) {
		fmt.Fprintf(p.out, "joined %s at %s as %s\n", printable(o.Token.Run), o.Token.Address, printable(name))
	}
	return member.Join(ctx, o)
}

// offer returns the slots and the labels of this machine.
func (c *joinCommand) offer() (slots int, labels map[string]string, err error) {
	slots, labels = runtime.GOMAXPROCS(0), map[string]string{}
	if c.Slots != nil {
		slots = *c.Slots
	}
	if slots < 0 || slots > members.MaxSlots {
		return 0, nil, fmt.Errorf("--slots %d: want 0 to %d", slots, members.MaxSlots)
	}
	for _, label := range c.Label {
		if err := placement.AddLabel(labels, label); err != nil {
			return 0, nil, fmt.Errorf("--label: %w", err)
		}
	}
	return slots, labels, nil
}

// programs returns which native plugins may run here.
func (c *joinCommand) programs() (member.Programs, error) {
	p := member.Programs{All: c.Native}
	for _, text := range c.Allow {
		digest, ok := strings.CutPrefix(strings.ToLower(text), "sha256:")
		if sum, err := hex.DecodeString(digest); !ok || err != nil || len(sum) != sha256.Size {
			return p, fmt.Errorf("--allow %s: want sha256: and 64 digits, as sha256sum prints them", printable(text))
		}
		p.SHA256 = append(p.SHA256, digest)
	}
	return p, nil
}

// token reads the file, and puts the address in that was given.
func (c *joinCommand) token() (cluster.Token, error) {
	text, err := os.ReadFile(newest(c.TokenFile))
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
	if token.Shared() {
		token.Address = c.Address
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

// newest returns the newest file that a pattern names, or the pattern where it names none.
func newest(pattern string) string {
	names, _ := filepath.Glob(pattern) // a bad pattern is the name of no file
	name, at := pattern, time.Time{}
	for _, n := range names {
		if info, err := os.Stat(n); err == nil && info.ModTime().After(at) {
			name, at = n, info.ModTime()
		}
	}
	return name
}

// betweenHosts shows the code and the remedy of an error between hosts.
func betweenHosts(err error) error {
	var e *control.Error
	if !errors.As(err, &e) {
		return err
	}
	return fail(exitUsage, fmt.Errorf("error[%s]: %s\n  help: %s", e.Code, printable(e.Reason), e.Help))
}

// elsewhere lets other machines join, with --listen or the key of [cluster], waits for them as the file says, and returns the instances that the
// file places on them.
func (t *training) elsewhere(ctx context.Context, of session.Elsewhere) (pipeline.Elsewhere, error) {
	c, err := t.command.cluster(of.Graph.Cluster, of.Graph.Dir)
	if err != nil {
		return nil, fail(exitUsage, err)
	}
	if c.Listen == "" && len(c.Servers) == 0 {
		return nil, nil
	}
	away := member.NewAway(of.Graph, c.OwnSlots(), t.logger())
	if away != nil {
		if err := away.Check(t.parts); err != nil {
			return nil, betweenHosts(err)
		}
	}
	if err := t.listen(ctx, of, &c, away); err != nil || away == nil {
		return nil, err
	}
	away.Settle()
	return away, nil
}

// cluster returns how machines join: as the file in a folder has it, but for what the flags say. Files are named so that every folder finds them.
func (c *trainCommand) cluster(of graph.Cluster, dir string) (graph.Cluster, error) {
	for _, file := range []*string{&of.TLSCert, &of.TLSKey, &of.Creds, &of.TLSCA} {
		if *file != "" {
			*file = files.In(dir, *file)
		}
	}
	if c.Hosts != nil {
		of.Hosts = *c.Hosts
	}
	for _, server := range c.Servers {
		if !graph.IsServer(server) {
			return of, fmt.Errorf("--servers %s: %s", server, graph.ServerHelp)
		}
	}
	switch {
	case len(c.Servers) > 0 && c.Listen != "":
		return of, errors.New("--listen and --servers do not go together: a run listens, or meets its machines at servers")
	case len(c.Servers) > 0:
		of.Servers, of.Listen = c.Servers, ""
	case c.Listen != "" && len(of.Servers) > 0:
		return of, errors.New("--listen and servers of [cluster] do not go together: a run listens, or meets its machines at servers")
	case c.Listen != "":
		of.Listen = c.Listen
	}
	if c.Creds+c.TLSCA != "" && len(of.Servers) == 0 {
		return of, errors.New("--creds and --tls-ca go with --servers, or with servers of [cluster]")
	}
	of.Creds, of.TLSCA = cmp.Or(c.Creds, of.Creds), cmp.Or(c.TLSCA, of.TLSCA)
	return of, nil
}

// listen lets other machines join, and waits for them.
func (t *training) listen(ctx context.Context, of session.Elsewhere, c *graph.Cluster, away *member.Away) error {
	var external *cluster.External
	if len(c.Servers) > 0 {
		external = &cluster.External{Servers: c.Servers, Creds: c.Creds, CA: c.TLSCA}
	}
	kernels := ""
	if away != nil && of.Graph.Synchronous {
		kernels = builtin.Kernels()
	}
	service, err := member.Serve(member.ServiceOptions{
		External: external, Kernels: kernels,
		Address: c.Listen, Run: of.Run.ID(), Dir: of.Run.Dir, Version: hostabi.Release, Hosts: c.Hosts, TokenFor: c.TokenFor,
		Log: t.logger(), CertFile: c.TLSCert, KeyFile: c.TLSKey,
		Channels: append(of.Graph.Channels(), c.Shares...), Servers: c.Shares,
		Away: away, Work: member.Work{Resumes: of.Resumes},
	})
	if err != nil {
		return betweenHosts(err)
	}
	t.hosts.Store(service)
	with := "rlhost join " + service.Address()
	if external != nil {
		with = "rlhost join" // the token has the servers
	}
	t.logger().Info("other machines may join", "with", with+" --token-file "+service.TokenFile())
	return service.Wait(ctx, c.WaitFor)
}

// learnsHere is the backend of a learner of a run that this machine has joined.
func learnsHere(backend string) (policy.Backend, error) {
	b := cpu.New()
	if backend != b.Name() {
		return nil, fmt.Errorf("backend %s does not learn on joined machines", backend)
	}
	return b, nil
}

// learners returns the other machines of the run that can learn.
func (t *training) learners() (list []ppo.HostCaller, joins bool) {
	service := t.hosts.Load()
	if service == nil {
		return nil, false
	}
	for _, c := range service.Callees() {
		list = append(list, c)
	}
	return list, true
}

// joined returns the other machines of the run.
func (t *training) joined() []control.HostStatus { return t.hosts.Load().Hosts() }
