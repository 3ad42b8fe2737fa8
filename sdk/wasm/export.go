//go:build wasip1

package wasm

import (
	"errors"
	"runtime"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk/internal/linear"
)

// instances are the batches that the host has created, by handle; a destroyed one is nil.
var instances []instance

// lastError is the text of the newest error; running is the batch that was called last.
var (
	lastError string
	running   instance
)

func fail(status hostabi.Status, err error) int32 {
	if err != nil {
		lastError = err.Error()
	}
	return int32(status)
}

// guardStep is guard for a step that sets done where nothing has panicked: asking costs a guest in Go as much as a step of CartPole.
func guardStep(done *bool, result *int32) {
	if *done {
		return
	}
	if p := recover(); p != nil {
		*result = fail(hostabi.StatusInternal, errors.New("panic: "+text(p)+place()))
	}
}

// guard turns a panic of the environment into a status, so that its message reaches the host.
func guard(result *int32) {
	if p := recover(); p != nil {
		*result = fail(hostabi.StatusInternal, errors.New("panic: "+text(p)+place()))
	}
}

// place returns where a panic that is being recovered began, with the function that called it there: the innermost ones
// that are not Go's own.
func place() string {
	const skipped = 3 // runtime.Callers, place and guard
	var calls [16]uintptr
	frames := runtime.CallersFrames(calls[:runtime.Callers(skipped, calls[:])])
	said := ""
	for n := 0; n < 2; {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "runtime.") {
			said += [...]string{" in ", ", called by "}[n] + short(f.Function) + " (" + short(f.File) + ":" + strconv.Itoa(f.Line) + ")"
			n++
		}
		if !more {
			break
		}
	}
	return said
}

// short cuts the folders off a path.
func short(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// text returns the text of a panic's value. Package fmt would say more and make a guest half as large again.
func text(value any) string {
	switch v := value.(type) {
	case error:
		return v.Error()
	case string:
		return v
	case stringer:
		return v.String()
	default:
		return "a value without a text"
	}
}

// find returns a batch, or nil.
func find(batch uint32) instance {
	if batch >= uint32(len(instances)) {
		return nil
	}
	running = instances[batch]
	return running
}

// findEnv returns a batch if it has the environment, or nil.
func findEnv(batch, env uint32) instance {
	b := find(batch)
	if b == nil || env >= uint32(b.size()) {
		return nil
	}
	return b
}

// give copies data to the host if it fits and returns its length.
func give[T string | []byte](data T, buf, capacity uint32) int32 {
	if uint32(len(data)) <= capacity {
		copy(linear.Bytes(buf, uint32(len(data))), data)
	}
	return int32(len(data))
}

//go:wasmexport rl_env_v1
func exportABI() {}

//go:wasmexport rl_sdk_go
func exportSDK() {} // for the words of messages

//go:wasmexport rl_describe
func exportDescribe(config, configLen, buf, capacity uint32) (result int32) {
	defer guard(&result)
	if served == nil {
		return fail(hostabi.StatusState, errors.New("the guest serves no environment"))
	}
	data, err := served.describe(string(linear.Bytes(config, configLen)))
	if err != nil {
		return fail(hostabi.StatusConfig, err)
	}
	return give(data, buf, capacity)
}

//go:wasmexport rl_alloc
func exportAlloc(size, align uint32) uint32 { return linear.Donate(size, align) }

//go:wasmexport rl_free
func exportFree(at, _ uint32) { linear.TakeBack(at) }

//go:wasmexport rl_create
func exportCreate(config, configLen, envs, autoreset uint32) (result int32) {
	defer guard(&result)
	if served == nil {
		return fail(hostabi.StatusState, errors.New("the guest serves no environment"))
	}
	b, status, err := served.create(string(linear.Bytes(config, configLen)), int(int32(envs)), hostabi.Autoreset(autoreset))
	if err != nil {
		return fail(status, err)
	}
	instances = append(instances, b)
	return int32(len(instances) - 1)
}

//go:wasmexport rl_destroy
func exportDestroy(batch uint32) int32 {
	if find(batch) == nil {
		return int32(hostabi.StatusArgument)
	}
	instances[batch], running = nil, nil
	return 0
}

//go:wasmexport rl_bind
func exportBind(batch, bindings, n uint32) (result int32) {
	defer guard(&result)
	b := find(batch)
	if b == nil || n > 64 {
		return int32(hostabi.StatusArgument)
	}
	return int32(b.bind(bindingsAt(bindings, n)))
}

//go:wasmexport rl_reset
func exportReset(batch, t, mask, seeds uint32) (result int32) {
	defer guard(&result)
	b := find(batch)
	if b == nil {
		return int32(hostabi.StatusArgument)
	}
	var chosen, stream []byte
	if mask != 0 {
		chosen = linear.Bytes(mask, uint32(b.size()))
	}
	if seeds != 0 {
		stream = linear.Bytes(seeds, uint32(b.size())*8)
	}
	return int32(b.reset(t, chosen, stream))
}

//go:wasmexport rl_step
func exportStep(batch, t uint32) (result int32) {
	done := false
	defer guardStep(&done, &result)
	b := find(batch)
	if b == nil {
		return int32(hostabi.StatusArgument)
	}
	result, done = int32(b.step(t, 0, everyEnv)), true
	return result
}

//go:wasmexport rl_step_range
func exportStepRange(batch, t, first, count uint32) (result int32) {
	defer guard(&result)
	b := find(batch)
	if b == nil || first > uint32(b.size()) || count > uint32(b.size())-first {
		return int32(hostabi.StatusArgument)
	}
	return int32(b.step(t, int(first), int(count)))
}

//go:wasmexport rl_save
func exportSave(batch, env, buf, capacity uint32) (result int32) {
	defer guard(&result)
	b := findEnv(batch, env)
	if b == nil {
		return int32(hostabi.StatusArgument)
	}
	data, status, err := b.save(int(env))
	if err != nil {
		return fail(status, err)
	}
	return give(data, buf, capacity)
}

//go:wasmexport rl_load
func exportLoad(batch, env, buf, n uint32) (result int32) {
	defer guard(&result)
	b := findEnv(batch, env)
	if b == nil {
		return int32(hostabi.StatusArgument)
	}
	return fail(b.load(int(env), linear.Bytes(buf, n)))
}

//go:wasmexport rl_render
func exportRender(batch, env, mode, buf, capacity uint32) (result int32) {
	defer guard(&result)
	b := findEnv(batch, env)
	if b == nil {
		return int32(hostabi.StatusArgument)
	}
	switch mode { // the numbers of the bits of hostabi.RenderMode
	case 0:
		text, status := b.text(int(env))
		if status != hostabi.StatusOK {
			return int32(status)
		}
		return give(text, buf, capacity)
	case 1:
		return b.draw(int(env), func(n int) []byte {
			if uint32(n) > capacity {
				return nil
			}
			return linear.Bytes(buf, uint32(n))
		})
	}
	return int32(hostabi.StatusUnsupported)
}

//go:wasmexport rl_last_error
func exportLastError(buf, capacity uint32) int32 { return give(lastError, buf, capacity) }

//go:wasmexport rl_current_env
func exportCurrentEnv() int32 {
	if running == nil {
		return 0
	}
	return int32(running.current())
}
