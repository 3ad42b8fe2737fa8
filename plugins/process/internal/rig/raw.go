package rig

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rlhost/rlhost/hostabi/native"
)

// Answers are a raw plugin's answers to calls by method: a document, an error, or a function that returns one.
type Answers map[string]any

// Serve is a plugin without any SDK.
func Serve(version int, a Answers) {
	if a[native.MethodDescribe] == nil {
		a[native.MethodDescribe] = native.Description{ABI: native.ABI, SDK: "raw", Kinds: []native.Kind{{Name: "thing"}}}
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion: uint(version), MagicCookieKey: native.CookieKey, MagicCookieValue: native.CookieValue,
		},
		Plugins:    plugin.PluginSet{native.PluginName: rawPlugin{answers: a}},
		GRPCServer: plugin.DefaultGRPCServer,
	})
}

type rawPlugin struct {
	plugin.NetRPCUnsupportedPlugin
	answers Answers
}

func (rawPlugin) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

func (p rawPlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	desc := &grpc.ServiceDesc{ServiceName: native.Service, HandlerType: (*any)(nil)}
	for _, method := range []string{
		native.MethodDescribe, native.MethodConfigure, native.MethodStart, native.MethodSnapshot,
		native.MethodRestore, native.MethodPause, native.MethodResume, native.MethodWaiting, native.MethodStop,
	} {
		desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: method, Handler: p.handler(method)})
	}
	s.RegisterService(desc, struct{}{})
	return nil
}

type handler = func(srv any, ctx context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error)

func (p rawPlugin) handler(method string) handler {
	return func(_ any, _ context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		request := new(wrapperspb.BytesValue)
		if err := dec(request); err != nil {
			return nil, err
		}
		answer := p.answers[method]
		switch fn := answer.(type) {
		case func() any:
			answer = fn()
		case func([]byte) any:
			answer = fn(request.Value)
		}
		if err, ok := answer.(error); ok {
			return nil, err
		}
		if answer == nil {
			answer = native.Empty{}
		}
		doc, err := json.Marshal(answer)
		if err != nil {
			return nil, err
		}
		return wrapperspb.Bytes(doc), nil
	}
}

// Sleep blocks without being found out: where nothing else can happen, select {} ends the process.
func Sleep() {
	for {
		time.Sleep(time.Hour)
	}
}
