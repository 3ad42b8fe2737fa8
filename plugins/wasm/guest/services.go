package guest

import (
	"math"

	"github.com/rlhost/rlhost/hostabi"
)

// Services are the imports of a component that its host serves, as hostabi specifies them. Addresses are not checked yet; see
// Instance.View. The guest that calls must not be called.
type Services interface {
	Emit(signal, message uint32) (int32, error) // the error is a fault, with which the call ends
	Lease(block uint32) (hostabi.Status, error) // the error is a fault, with which the call ends
	Release(block uint32) hostabi.Status
	Column(block uint32, name []byte, access hostabi.ColumnFlags, to uint32) hostabi.Status
	Declare(kind hostabi.MetricKind, name []byte) int32
	Report(metric uint32, value float64)
	Timer(after, every int64) int32
	Cancel(timer uint32) hostabi.Status
	Stop(reason hostabi.StopReason) hostabi.Status
	Ask(ask uint32, args []byte, within int64) int32 // args are the guest's memory
}

// serviceWeight is the cost of a call of Services, in units of fuel.
const serviceWeight = 50

// componentCalls are the host's functions for components.
func componentCalls() map[string]hostCall {
	return map[string]hostCall{
		hostabi.ImportLog:        rlLog,
		hostabi.ImportLogEnabled: rlLogEnabled,
		hostabi.ImportEmit: served(func(s Services, _ *Instance, stack []uint64) int32 {
			outcome, err := s.Emit(uint32(stack[0]), uint32(stack[1]))
			if err != nil {
				panic(err)
			}
			return outcome
		}),
		hostabi.ImportLease: served(func(s Services, _ *Instance, stack []uint64) int32 {
			status, err := s.Lease(uint32(stack[0]))
			if err != nil {
				panic(err)
			}
			return int32(status)
		}),
		hostabi.ImportRelease: served(func(s Services, _ *Instance, stack []uint64) int32 {
			return int32(s.Release(uint32(stack[0])))
		}),
		hostabi.ImportColumn: served(func(s Services, i *Instance, stack []uint64) int32 {
			name := i.text(stack[1], stack[2])
			if name == nil {
				return int32(hostabi.StatusArgument)
			}
			return int32(s.Column(uint32(stack[0]), name, hostabi.ColumnFlags(stack[3]), uint32(stack[4])))
		}),
		hostabi.ImportTimer: served(func(s Services, _ *Instance, stack []uint64) int32 {
			return s.Timer(int64(stack[0]), int64(stack[1]))
		}),
		hostabi.ImportCancel: served(func(s Services, _ *Instance, stack []uint64) int32 {
			return int32(s.Cancel(uint32(stack[0])))
		}),
		hostabi.ImportDeclare: served(func(s Services, i *Instance, stack []uint64) int32 {
			name := i.text(stack[1], stack[2])
			if name == nil {
				return int32(hostabi.StatusArgument)
			}
			return s.Declare(hostabi.MetricKind(stack[0]), name)
		}),
		hostabi.ImportReport: func(i *Instance, stack []uint64) {
			if i.owner.Services != nil {
				i.owner.Services.Report(uint32(stack[0]), math.Float64frombits(stack[1]))
			}
		},
		hostabi.ImportStop: served(func(s Services, _ *Instance, stack []uint64) int32 {
			return int32(s.Stop(hostabi.StopReason(stack[0])))
		}),
		hostabi.ImportAsk: served(func(s Services, i *Instance, stack []uint64) int32 {
			n := uint32(stack[2])
			args := i.View(uint32(stack[1]), n)
			if args == nil && n > 0 || n > hostabi.MaxRequestBytes {
				return int32(hostabi.StatusArgument)
			}
			i.work(int(n))
			return s.Ask(uint32(stack[0]), args, int64(stack[3]))
		}),
	}
}

// served makes a host function of a service. Before the component has been started there is none.
func served(call func(s Services, i *Instance, stack []uint64) int32) hostCall {
	return func(i *Instance, stack []uint64) {
		result := int32(hostabi.StatusState)
		if i.owner.Services != nil {
			result = call(i.owner.Services, i, stack)
		}
		stack[0] = uint64(uint32(result))
		i.work(serviceWeight)
	}
}

// text returns a short piece of the guest's memory, or nil.
func (i *Instance) text(at, n uint64) []byte {
	if uint32(n) == 0 || uint32(n) > maxMetricBytes {
		return nil
	}
	return i.View(uint32(at), uint32(n))
}
