package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/sdk/process/rpc"
)

// Plugin is what a program offers.
type Plugin struct {
	// Kinds makes an unconfigured component of each kind, by the kind's name in snake_case. A process runs one
	// component; one more is made, configured and forgotten when a configuration is only checked.
	Kinds map[string]func() component.Component
	// Docs has a sentence for each kind.
	Docs map[string]string
	// Policy makes of a [policy.NAME] table what Host.Policy returns, for the environment that the policy is for. decode
	// is as in Component.Configure. nil: the kinds use no policies.
	Policy func(decode func(into any) error, env *hostabi.EnvSpec) (component.Policy, error)
	// Load loads the source that worker processes of the program make environments of. nil: it works none.
	Load func(ctx context.Context, source env.Source) (env.Plugin, error)
}

// Exit statuses of a plugin.
const (
	exitUsage  = 2 // not started by a host, or not as a plugin is
	exitFailed = 1 // the component has failed; the host has been told why
)

// maxCall bounds the bytes of one control call.
const maxCall = 16 << 20

// Serve serves the plugin until the host stops it or is gone, and ends the process then. It is all that main does.
// Nothing may be printed to standard output before; what is printed there later goes to standard error, and both end
// up in the host's log.
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

// serve answers the host's calls until it has asked for the end. What the process has inherited it opens while the
// host connects.
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
	// Ctrl-C is the host's affair. Not ignored but dropped: programs that the component starts get it.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	err = <-served
	s.close()
	return err
}
