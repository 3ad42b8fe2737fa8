package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"

	"github.com/rlhost/rlhost/sdk/process/protocol"
	"github.com/rlhost/rlhost/sdk/process/rpc"
)

// refuse returns an error with the code that the host gets.
func refuse(code int, format string, args ...any) error {
	return &rpc.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// answer makes one call and encodes what came of it.
func (s *server) answer(ctx context.Context, method string, doc []byte) (reply []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			reply, err = nil, refuse(protocol.CodeFailed, "panic in %s: %v\n%s", method, v, debug.Stack())
		}
	}()
	out, err := s.call(ctx, method, doc)
	if err != nil {
		return nil, &rpc.Error{Code: codeOf(err), Message: err.Error()}
	}
	return json.Marshal(out)
}

func codeOf(err error) int {
	var r *rpc.Error
	switch {
	case errors.As(err, &r):
		return r.Code
	case errors.Is(err, component.ErrNoSnapshot), errors.Is(err, env.ErrUnsupported), errors.Is(err, errNoEnvs):
		return protocol.CodeUnsupported
	case errors.Is(err, errNothing), errors.Is(err, errLoaded), errors.Is(err, errMade), errors.Is(err, errNotMade):
		return protocol.CodeOrder
	}
	return protocol.CodeFailed
}

// read decodes a document of the host's.
func read[T any](doc []byte) (T, error) {
	var into T
	if err := decodeJSON(doc, &into); err != nil {
		return into, refuse(protocol.CodeInvalid, "the call's document: %v", err)
	}
	return into, nil
}

// call serves one control call.
func (s *server) call(ctx context.Context, method string, doc []byte) (any, error) {
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
	return nil, refuse(protocol.CodeUnsupported, "unknown method %s", method)
}

func handle[In, Out any](doc []byte, fn func(In) (Out, error)) (any, error) {
	in, err := read[In](doc)
	if err != nil {
		return nil, err
	}
	return fn(in)
}
