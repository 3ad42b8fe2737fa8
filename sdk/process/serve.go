package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"

	core "github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/author"
	"github.com/rlhost/rlhost/sdk/component"
	"github.com/rlhost/rlhost/sdk/process/rpc"
)

// Plugin is the content of a program.
type Plugin struct {
	// Components makes an unconfigured component of each kind, by the kind's name in snake_case. A process runs one
	// component; a check of a configuration makes, configures and drops another.
	Components map[string]func() component.Component
	// Kinds are further ones, written against the wide interface of the host's own components.
	Kinds map[string]func() core.Component
	// Docs has a sentence for each kind.
	Docs map[string]string
	// Policy makes the result of Host.Policy from a [policy.NAME] table, for the policy's environment. decode is as in
	// Component.Configure. nil: the kinds use no policies.
	Policy func(decode func(into any) error, env *hostabi.EnvSpec) (core.Policy, error)
	// Load loads the source of the environments of the program's worker processes. nil: it has none.
	Load func(ctx context.Context, source env.Source) (env.Plugin, error)
}

// kinds returns all kinds that the plugin makes.
func (p *Plugin) kinds() map[string]func() core.Component {
	all := maps.Clone(p.Kinds)
	if all == nil {
		all = map[string]func() core.Component{}
	}
	for name, make := range p.Components {
		all[name] = author.Kind(make)
	}
	return all
}

// Exit statuses of a plugin.
const (
	exitUsage  = 2 // not started by a host, or not as a plugin is
	exitFailed = 1 // the component has failed and the host knows why
)

// maxCall bounds the bytes of one control call.
const maxCall = 16 << 20

// Serve serves the plugin until the host stops it or is gone, and ends the process then. It is all that main does.
// Nothing may be printed to standard output before; later prints there go to standard error, and so to the host's log.
func Serve(p Plugin) {
	if os.Getenv(native.CookieKey) != native.CookieValue {
		fmt.Fprintf(os.Stderr, "%s is a plugin of rlhost, which starts it: name it in [plugin.NAME] of a pipeline file\n", os.Args[0])
		os.Exit(exitUsage)
	}
	if err := serve(p, os.Getenv(socketDirKey)); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v: was it started by rlhost?\n", os.Args[0], err)
		os.Exit(exitUsage)
	}
	os.Exit(0)
}

// socketDirKey is the environment variable of go-plugin that names the folder for the plugin's socket.
const socketDirKey = "PLUGIN_UNIX_SOCKET_DIR"

var errNoFolder = errors.New("the host has named no folder for the plugin's socket")

// serve answers the host's calls until it shuts the plugin down. It opens the inherited files while the host connects.
func serve(p Plugin, dir string) error {
	if dir == "" {
		return errNoFolder
	}
	opened := make(chan struct{})
	var s *server
	calls, err := rpc.Listen(rpc.Config{
		Dir: dir, Service: native.Service, MaxCall: maxCall,
		Call: func(ctx context.Context, method string, doc []byte) ([]byte, error) {
			<-opened
			return s.answer(ctx, method, doc)
		},
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Println(calls.Line(native.Version)); err != nil {
		return errors.Join(err, calls.Close())
	}
	redirectOutput()
	served := make(chan error, 1)
	go func() { served <- calls.Serve() }()
	if s, err = newServer(p); err != nil {
		return errors.Join(err, calls.Close())
	}
	close(opened)
	go s.readWire()
	// The host handles Ctrl-C. Dropped, not ignored, so that programs that the component starts get it.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	err = <-served
	s.close()
	return err
}
