package process

import (
	"context"
	"fmt"
	"os"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/rollout"
	"github.com/rlhost/rlhost/sdk/process/protocol"
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
	Policy func(decode func(into any) error, env *rollout.EnvSpec) (any, error)
	// Load loads the source that worker processes of the program make environments of. nil: it works none.
	Load func(ctx context.Context, source protocol.EnvSource) (rollout.Plugin, error)
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
	if os.Getenv(protocol.CookieKey) != protocol.CookieValue {
		fmt.Fprintf(os.Stderr, "%s is a plugin of rlhost, which starts it: name it in [plugin.NAME] of a pipeline file\n", os.Args[0])
		os.Exit(exitUsage)
	}
	s, err := newServer(p)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v: was it started by rlhost?\n", os.Args[0], err)
		os.Exit(exitUsage)
	}
	go s.readWire()
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion: protocol.Version, MagicCookieKey: protocol.CookieKey, MagicCookieValue: protocol.CookieValue,
		},
		VersionedPlugins: map[int]goplugin.PluginSet{
			protocol.Version: {protocol.PluginName: &served{server: s}},
		},
		GRPCServer: func(o []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(o, grpc.MaxRecvMsgSize(maxCall), grpc.MaxSendMsgSize(maxCall))...)
		},
		Logger: hclog.NewNullLogger(),
	})
	s.close()
	os.Exit(0)
}

// served tells go-plugin how to offer the service.
type served struct {
	goplugin.NetRPCUnsupportedPlugin
	server *server
}

var _ goplugin.GRPCPlugin = (*served)(nil)

// GRPCServer registers the control service.
func (v *served) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	s.RegisterService(serviceDesc(), v.server)
	return nil
}

// GRPCClient is for hosts, which do without it.
func (v *served) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, fmt.Errorf("this is a plugin")
}
