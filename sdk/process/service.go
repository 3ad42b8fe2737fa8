package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/sdk/process/rpc"
)

// refuse returns an error with a gRPC code.
func refuse(code int, format string, args ...any) error {
	return &rpc.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// answer makes one call and encodes its result.
func (s *server) answer(ctx context.Context, method string, doc []byte) (reply []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			reply, err = nil, refuse(native.CodeFailed, "panic in %s: %v\n%s", method, v, debug.Stack())
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
		return native.CodeUnsupported
	case errors.Is(err, errNothing), errors.Is(err, errLoaded), errors.Is(err, errMade), errors.Is(err, errNotMade):
		return native.CodeOrder
	}
	return native.CodeFailed
}

// read decodes a document of the host.
func read[T any](doc []byte) (T, error) {
	var into T
	if err := decodeJSON(doc, &into); err != nil {
		return into, refuse(native.CodeInvalid, "the call's document: %v", err)
	}
	return into, nil
}

// call serves one control call.
func (s *server) call(ctx context.Context, method string, doc []byte) (any, error) {
	switch method {
	case native.MethodDescribe:
		return s.describe(), nil
	case native.MethodConfigure:
		return handle(doc, s.configure)
	case native.MethodStart:
		return native.Empty{}, s.start()
	case native.MethodSnapshot:
		return s.snapshot()
	case native.MethodRestore:
		return handle(doc, s.restore)
	case native.MethodPause:
		return handle(doc, s.pause)
	case native.MethodResume:
		return handle(doc, s.resume)
	case native.MethodWaiting:
		return s.waiting()
	case native.MethodCut:
		return s.cut()
	case native.MethodStop:
		return native.Empty{}, s.stop()
	case native.MethodEnvLoad:
		return handle(doc, func(d env.Source) (native.EnvLoaded, error) { return s.envs.loadEnv(ctx, d) })
	case native.MethodEnvMake:
		return handle(doc, s.envs.makeEnvs)
	case native.MethodEnvState:
		return handle(doc, func(d native.EnvStateCall) (native.StateSize, error) { return s.envs.doState(ctx, d) })
	}
	return nil, refuse(native.CodeUnsupported, "unknown method %s", method)
}

func handle[In, Out any](doc []byte, fn func(In) (Out, error)) (any, error) {
	in, err := read[In](doc)
	if err != nil {
		return nil, err
	}
	return fn(in)
}
