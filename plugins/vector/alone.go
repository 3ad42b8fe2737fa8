package vector

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Calls where environments are stepped alone. LinkEnvStep begins steps there and has no answer: the numbers of Split environments are in
// the first list from place T on, which continues at its beginning.
const (
	// Receive is the slot of a call for the first Split environments whose steps are over, in that order. The answer has their number in
	// Split, the flags of all of them in Inline, and the second list names them.
	Receive = 3
	// Announce is a bit of Kind in LinkEnvReset: Receive tells the environments that were reset, too.
	Announce = 0x100
)

// alone steps environments one by one. Steps end on other goroutines.
type alone struct {
	*server
	envs *env.Alone
	to   []int32 // step, of one call
	ends []trajectory.Ended

	mu     sync.Mutex
	still  *sync.Cond // no environment is in a step
	inStep int
	over   []int32   // environments whose steps are over, in that order
	faults []failure // that were not told yet
	wanted int       // by the call of Receive that waits; 0: none does
	broken error     // of an answer
}

// failure is an error, and the environments that need a reset after it.
type failure struct {
	err  error
	envs []int
}

func newAlone(s *server, plugin env.Plugin, o env.Options) (*alone, error) {
	a := &alone{server: s, ends: make([]trajectory.Ended, o.Envs)}
	a.still = sync.NewCond(&a.mu)
	var err error
	if a.envs, err = env.NewAlone(plugin, o, a.stepped); errors.Is(err, env.ErrUnsupported) {
		return nil, fmt.Errorf("%w: leave batch_size out, or write the wrappers in Python (gym_wrap in args) where there are wrappers of the host", err)
	}
	return a, err
}

// answer makes a call.
func (a *alone) answer(m *hostabi.Message) error {
	switch m.Slot {
	case hostabi.LinkEnvStep:
		return a.step(m.T, m.Split)
	case Receive:
		return a.receive(int(m.Split))
	}
	var err error
	switch m.Slot {
	case hostabi.LinkEnvReset:
		err = a.reset(m.Kind)
	case Render:
		a.quiet(func() { err = a.render(a.envs.Env(), int(m.T), int(m.Split)) })
	case Ask:
		a.quiet(func() { err = a.ask(a.envs.Env()) })
	default:
		err = fmt.Errorf("there is no call %#x", m.Slot)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		return a.fail(failure{err, a.costs(-1, err)})
	}
	return errors.Join(a.broken, a.reply(hostabi.Message{Slot: hostabi.LinkEnvReply, T: 1}))
}

// fail answers a call that has failed. The caller holds mu.
func (a *alone) fail(f failure) error {
	err := a.tell(&Failed{Reason: f.err.Error(), Envs: f.envs})
	return errors.Join(a.broken, err, a.reply(hostabi.Message{Slot: hostabi.LinkEnvReply, Kind: 1, T: 1}))
}

// step begins steps of the environments that the first list names.
func (a *alone) step(first, count uint32) error {
	n := uint32(len(a.ends))
	if count > n {
		return fmt.Errorf("steps of %d environments of %d", count, n)
	}
	list := a.resets.Bytes()[listsAt(int(n)):]
	a.to = a.to[:0]
	for k := range count {
		a.to = append(a.to, int32(binary.LittleEndian.Uint32(list[4*((first+k)%n):])))
	}
	a.mu.Lock()
	a.inStep += len(a.to)
	a.mu.Unlock()
	begun, err := a.envs.Step(a.to)
	for _, index := range a.to[begun:] {
		a.stepped(int(index), 0, err)
	}
	return nil
}

// stepped is called at the end of each step.
func (a *alone) stepped(index int, ended trajectory.Ended, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inStep--; a.inStep == 0 {
		a.still.Broadcast()
	}
	if err != nil {
		a.failed(index, err)
	} else {
		a.ends[index] = ended
		a.over = append(a.over, int32(index))
	}
	if a.wanted > 0 {
		a.broken = errors.Join(a.broken, a.hand())
	}
}

// failed notes an error, once where it is that of several environments. The caller holds mu.
func (a *alone) failed(index int, err error) {
	if n := len(a.faults); n > 0 && errors.Is(a.faults[n-1].err, err) {
		return
	}
	f := failure{err, a.costs(index, err)}
	a.over = slices.DeleteFunc(a.over, func(index int32) bool { return slices.Contains(f.envs, int(index)) })
	a.faults = append(a.faults, f)
}

// costs returns which environments need a reset after an error in a step of one of them, or in a call, where index is -1.
func (a *alone) costs(index int, err error) (envs []int) {
	spans := env.Lost(err)
	var f *env.Fault
	if errors.Is(err, env.ErrPoisoned) || errors.As(err, &f) && f.Poisons() {
		spans = []env.Span{{First: 0, Count: len(a.ends)}}
	}
	for _, span := range spans {
		for i := range span.Count {
			envs = append(envs, span.First+i)
		}
	}
	if envs == nil && index >= 0 {
		envs = []int{index}
	}
	return envs
}

// receive answers a call now, or once so many steps are over.
func (a *alone) receive(count int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wanted = max(count, 1)
	return errors.Join(a.broken, a.hand())
}

// hand answers the call of Receive that waits if there is something to say. The caller holds mu.
func (a *alone) hand() error {
	if len(a.faults) > 0 {
		f := a.faults[0]
		a.faults, a.wanted = slices.Delete(a.faults, 0, 1), 0
		return a.fail(f)
	}
	n := a.wanted
	if n > len(a.over) {
		return nil
	}
	list := a.resets.Bytes()[listsAt(len(a.ends))+4*len(a.ends):]
	var ends trajectory.Ended
	for k, index := range a.over[:n] {
		binary.LittleEndian.PutUint32(list[4*k:], uint32(index))
		ends |= a.ends[index]
	}
	a.over, a.wanted = slices.Delete(a.over, 0, n), 0
	return a.reply(hostabi.Message{Slot: hostabi.LinkEnvReply, T: 1, Split: uint32(n), Inline: [2]uint64{uint64(ends)}})
}

// quiet waits until no environment is in a step, and calls do.
func (a *alone) quiet(do func()) {
	a.mu.Lock()
	for a.inStep > 0 {
		a.still.Wait()
	}
	a.mu.Unlock()
	do()
}

// reset starts episodes once no environment is in a step. What steps of environments that are reset have brought is forgotten.
func (a *alone) reset(kind uint16) (err error) {
	mask, seeds := a.resetOf(kind)
	within := func(index int) bool { return mask == nil || mask[index] != 0 }
	a.quiet(func() { err = a.envs.Reset(mask, seeds) })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = slices.DeleteFunc(a.over, func(index int32) bool { return within(int(index)) })
	a.faults = slices.DeleteFunc(a.faults, func(f failure) bool { return !slices.ContainsFunc(f.envs, func(i int) bool { return !within(i) }) })
	for index := range a.ends {
		if err == nil && kind&Announce != 0 && within(index) {
			a.ends[index] = 0
			a.over = append(a.over, int32(index))
		}
	}
	return err
}
