package module

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk/component"
	"github.com/rlhost/rlhost/sdk/internal/linear"
)

// served is the component that the module is made of.
var served struct {
	name      string
	make      func() component.Component
	component component.Component
	host      *host
	lastError string
}

// Serve, for init, sets the module's name@version and the function that makes an unconfigured component.
func Serve(name string, make func() component.Component) { served.name, served.make = name, make }

func fail(status hostabi.Status, err error) int32 {
	served.lastError = err.Error()
	return int32(status)
}

// guard turns a panic of the component into a status, so that its message reaches the host.
func guard(result *int32) {
	if p := recover(); p != nil {
		*result = fail(hostabi.StatusInternal, fmt.Errorf("panic: %v", p))
	}
}

//go:wasmexport rl_component_v1
func exportMarker() {}

//go:wasmexport rl_sdk_go
func exportSDK() {} // for the words of messages

//go:wasmexport rl_alloc
func exportAlloc(size, align uint32) uint32 { return linear.Donate(size, align) }

//go:wasmexport rl_free
func exportFree(at, _ uint32) { linear.TakeBack(at) }

//go:wasmexport rl_last_error
func exportLastError(buf, size uint32) int32 {
	n := copy(linear.Bytes(buf, size), served.lastError)
	if uint32(n) < size {
		linear.Bytes(buf, size)[n] = 0
	}
	return int32(len(served.lastError))
}

//go:wasmexport rl_configure
func exportConfigure(text, n uint32) (result int32) {
	defer guard(&result)
	served.component = served.make()
	if err := served.component.Configure(decoder(string(linear.Bytes(text, n)))); err != nil {
		return fail(hostabi.StatusConfig, errors.New(configWords(err)))
	}
	return 0
}

//go:wasmexport rl_manifest
func exportManifest(buf, size uint32) (result int32) {
	defer guard(&result)
	b := describe(served.name, served.component)
	if uint32(len(b)) <= size {
		copy(linear.Bytes(buf, size), b)
	}
	return int32(len(b))
}

//go:wasmexport rl_start
func exportStart(at, n uint32) (result int32) {
	defer guard(&result)
	id := *identityAt(at)
	name := string(linear.Bytes(at, n)[id.NameAt:][:id.NameLen])
	served.host = newHost(served.component, component.Identity{
		Name: name, Index: int(id.Index), Count: int(id.Count), Seed: id.Seed, Synchronous: id.Synchronous != 0})
	if err := served.component.Start(served.host); err != nil {
		return fail(hostabi.StatusInternal, err)
	}
	return served.host.outcome()
}

//go:wasmexport rl_slot
func exportSlot(slot, message uint32) (result int32) {
	defer guard(&result)
	served.host.handle(slot, messageAt(message))
	return served.host.outcome()
}

//go:wasmexport rl_timer
func exportTimer(id uint32) (result int32) {
	defer guard(&result)
	served.host.fire(id)
	return served.host.outcome()
}

//go:wasmexport rl_request
func exportRequest(at, _, buf, size uint32) (result int32) {
	defer guard(&result)
	call := callAt(at)
	reply, status, err := served.host.answer(call.Request, append([]byte(nil), linear.Bytes(at+call.ArgsAt, call.ArgsLen)...))
	if err != nil {
		return fail(status, err)
	}
	if uint32(len(reply)) <= size {
		copy(linear.Bytes(buf, size), reply)
	}
	return int32(len(reply))
}

//go:wasmexport rl_answer
func exportAnswer(at, n uint32) (result int32) {
	defer guard(&result)
	b := append([]byte(nil), linear.Bytes(at, n)...)
	served.host.answered(answerAt(at), func(from, n uint32) []byte { return b[from:][:n] })
	return served.host.outcome()
}

// state is the state whose length the newest rl_snapshot has asked for.
var state []byte

//go:wasmexport rl_snapshot
func exportSnapshot(buf, size uint32) (result int32) {
	defer guard(&result)
	if size == 0 {
		var err error
		if state, err = served.component.Snapshot(); err != nil {
			return fail(hostabi.StatusInternal, err)
		}
	}
	if uint32(len(state)) <= size {
		copy(linear.Bytes(buf, size), state)
	}
	return int32(len(state))
}

//go:wasmexport rl_restore
func exportRestore(at, n uint32) (result int32) {
	defer guard(&result)
	if err := served.component.Restore(append([]byte(nil), linear.Bytes(at, n)...)); err != nil {
		return fail(hostabi.StatusVersion, err)
	}
	return 0
}

//go:wasmexport rl_pause
func exportPause() (result int32) {
	defer guard(&result)
	if p, ok := served.component.(component.Pauser); ok {
		served.host.failOn(p.Pause())
	}
	return served.host.outcome()
}

//go:wasmexport rl_resume
func exportResume() (result int32) {
	defer guard(&result)
	if p, ok := served.component.(component.Pauser); ok {
		served.host.failOn(p.Resume())
	}
	return served.host.outcome()
}

//go:wasmexport rl_stop
func exportStop() (result int32) {
	defer guard(&result)
	if err := served.component.Stop(); err != nil {
		return fail(hostabi.StatusInternal, err)
	}
	return 0
}
