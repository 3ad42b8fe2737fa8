//go:build wasip1

package module

import (
	"unsafe"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk/internal/linear"
)

//go:wasmimport rl_component emit
func hostEmit(signal uint32, message *hostabi.ComponentMessage) int32

//go:wasmimport rl_component lease
func hostLease(block uint32) int32

//go:wasmimport rl_component release
func hostRelease(block uint32) int32

//go:wasmimport rl_component column
func hostColumn(block uint32, name unsafe.Pointer, n uint32, access uint32, column *hostabi.ColumnBinding) int32

//go:wasmimport rl_component declare
func hostDeclare(kind uint32, name unsafe.Pointer, n uint32) int32

//go:wasmimport rl_component report
func hostReport(metric uint32, value float64)

//go:wasmimport rl_component timer
func hostTimer(after, every int64) int32

//go:wasmimport rl_component cancel
func hostCancel(timer uint32) int32

//go:wasmimport rl_component stop
func hostStop(reason uint32) int32

//go:wasmimport rl_optional ask
func hostAsk(ask uint32, args unsafe.Pointer, n uint32, within int64) int32

//go:wasmimport rl_component log
func hostLog(level uint32, text unsafe.Pointer, n uint32)

//go:wasmimport rl_optional log
func hostTryLog(level uint32, text unsafe.Pointer, n uint32)

// column asks for a column by its name.
func column(block uint32, name string, access hostabi.ColumnFlags, to *hostabi.ColumnBinding) hostabi.Status {
	return hostabi.Status(hostColumn(block, unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)), uint32(access), to))
}

// ask asks another component, and returns the number of the question.
func ask(question uint32, args []byte, within int64) int32 {
	return hostAsk(question, unsafe.Pointer(unsafe.SliceData(args)), uint32(len(args)), within)
}

// declare makes a metric known.
func declare(kind hostabi.MetricKind, name string) int32 {
	return hostDeclare(uint32(kind), unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)))
}

// say logs a line.
func say(level uint32, line []byte) {
	hostLog(level, unsafe.Pointer(unsafe.SliceData(line)), uint32(len(line)))
}

// trySay logs a line where the module may.
func trySay(level uint32, line []byte) {
	hostTryLog(level, unsafe.Pointer(unsafe.SliceData(line)), uint32(len(line)))
}

// bindingsAt views the columns of a message.
func bindingsAt(at uint32, n int) []hostabi.ColumnBinding {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*hostabi.ColumnBinding)(linear.Pointer(at)), n)
}

// messageAt views a message.
func messageAt(at uint32) *hostabi.ComponentMessage {
	return (*hostabi.ComponentMessage)(linear.Pointer(at))
}

// identityAt views the argument of rl_start.
func identityAt(at uint32) *hostabi.Identity {
	return (*hostabi.Identity)(linear.Pointer(at))
}

// answerAt views the argument of rl_answer.
func answerAt(at uint32) *hostabi.AnswerCall {
	return (*hostabi.AnswerCall)(linear.Pointer(at))
}

// callAt views the argument of rl_request.
func callAt(at uint32) *hostabi.RequestCall {
	return (*hostabi.RequestCall)(linear.Pointer(at))
}
