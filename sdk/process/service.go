package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/rollout"
	"github.com/rlhost/rlhost/sdk/process/protocol"
)

// refusal is an error with the code that the host gets.
type refusal struct {
	code codes.Code
	text string
}

func (r *refusal) Error() string { return r.text }

func refuse(code codes.Code, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// methods are the calls of the service.
var methods = []string{
	protocol.MethodDescribe, protocol.MethodConfigure, protocol.MethodStart, protocol.MethodSnapshot,
	protocol.MethodRestore, protocol.MethodPause, protocol.MethodResume, protocol.MethodWaiting, protocol.MethodStop, protocol.MethodEnvLoad, protocol.MethodEnvMake, protocol.MethodEnvState,
}

// caller is what the service is offered by.
type caller interface {
	call(ctx context.Context, method string, doc []byte) (any, error)
}

var _ caller = (*server)(nil)

// serviceDesc describes the service by hand: every request and reply is a BytesValue with a JSON document.
func serviceDesc() *grpc.ServiceDesc {
	d := &grpc.ServiceDesc{ServiceName: protocol.Service, HandlerType: (*caller)(nil)}
	for _, name := range methods {
		d.Methods = append(d.Methods, grpc.MethodDesc{
			MethodName: name,
			Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				in := new(wrapperspb.BytesValue)
				if err := decode(in); err != nil {
					return nil, err
				}
				return answer(srv.(caller), ctx, name, in.GetValue())
			},
		})
	}
	return d
}

// answer makes one call and encodes what came of it.
func answer(c caller, ctx context.Context, method string, doc []byte) (reply any, err error) {
	defer func() {
		if v := recover(); v != nil {
			reply, err = nil, status.Errorf(codes.Code(protocol.CodeFailed), "panic in %s: %v\n%s", method, v, debug.Stack())
		}
	}()
	out, err := c.call(ctx, method, doc)
	if err != nil {
		return nil, status.Error(codeOf(err), err.Error())
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return wrapperspb.Bytes(b), nil
}

func codeOf(err error) codes.Code {
	var r *refusal
	switch {
	case errors.As(err, &r):
		return r.code
	case errors.Is(err, component.ErrNoSnapshot), errors.Is(err, rollout.ErrUnsupported), errors.Is(err, errNoEnvs):
		return codes.Code(protocol.CodeUnsupported)
	case errors.Is(err, errNothing), errors.Is(err, errLoaded), errors.Is(err, errMade), errors.Is(err, errNotMade):
		return codes.Code(protocol.CodeOrder)
	}
	return codes.Code(protocol.CodeFailed)
}

// read decodes a document of the host's.
func read[T any](doc []byte) (T, error) {
	var into T
	if err := decodeJSON(doc, &into); err != nil {
		return into, refuse(codes.Code(protocol.CodeInvalid), "the call's document: %v", err)
	}
	return into, nil
}

// call serves one control call.
func (s *server) call(ctx context.Context, method string, doc []byte) (any, error) {
	s.redirect.Do(redirectOutput)
	switch method {
	case protocol.MethodDescribe:
		return s.describe(), nil
	case protocol.MethodConfigure:
		return handle(doc, s.configure)
	case protocol.MethodStart:
		return protocol.Empty{}, s.start()
	case protocol.MethodSnapshot:
		return s.snapshot()
	case protocol.MethodRestore:
		return handle(doc, s.restore)
	case protocol.MethodPause:
		return handle(doc, s.pause)
	case protocol.MethodResume:
		return handle(doc, s.resume)
	case protocol.MethodWaiting:
		return s.waiting()
	case protocol.MethodStop:
		return protocol.Empty{}, s.stop()
	case protocol.MethodEnvLoad:
		return handle(doc, func(d protocol.EnvSource) (protocol.EnvLoaded, error) { return s.envs.loadEnv(ctx, d) })
	case protocol.MethodEnvMake:
		return handle(doc, s.envs.makeEnvs)
	case protocol.MethodEnvState:
		return handle(doc, func(d protocol.EnvStateCall) (protocol.StateSize, error) { return s.envs.doState(ctx, d) })
	}
	return nil, refuse(codes.Unimplemented, "there is no call %q", method)
}

func handle[In, Out any](doc []byte, fn func(In) (Out, error)) (any, error) {
	in, err := read[In](doc)
	if err != nil {
		return nil, err
	}
	return fn(in)
}
