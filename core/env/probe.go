package env

import (
	"fmt"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// EnvProber is optional for an Env, for checks of environments: it reports actions of a guest that no block shows. It is not on the step path.
type EnvProber interface {
	// Probe returns what has happened since the previous call; the first one only prepares. trespass describes writes outside the
	// environment's memory, words is the error that the environment reported although its calls returned none. Both may be empty.
	Probe() (trespass, words string, err error)
}

// Examiner is optional for a Plugin, for checks of environments: it reports findings in the source alone.
type Examiner interface {
	Examine() Examination
}

// Examination is the result of examining a source without running it.
type Examination struct {
	Wrong string // what cannot work, or ""
	Risky string // a fault that may stay unseen, or ""
	Fine  string // the finding if all is well
	Help  string // the remedy
}

// Sized is optional for a Plugin whose instances have memory that ends somewhere, whatever its limit is, and into which blocks are
// mapped.
type Sized interface {
	// MemoryFor returns the minimum size of the memory of an instance that steps into so many blocks of a schema, without its
	// environments' own memory, and the limit.
	MemoryFor(blocks int, s *trajectory.Schema) (least, end uint64)
}

// Keeper is optional for a Plugin whose batches keep shared memory in addition to the blocks that they step into.
type Keeper interface {
	// KeptBytes returns how much a batch of so many environments keeps.
	KeptBytes(envs int) int64
}

// KeptBytes returns how much shared memory a batch of a plugin keeps for itself.
func KeptBytes(p Plugin, envs int) int64 {
	if keeper, ok := p.(Keeper); ok {
		return keeper.KeptBytes(envs)
	}
	return 0
}

// Saver is optional for a Plugin whose batches save their state.
type Saver interface {
	// StateBytes returns what the state of a batch of so many environments takes at most, as far as that is known before they step.
	StateBytes(envs int) (int64, error)
}

// StateBytes returns what the state of a batch of a plugin takes at most; 0 where it is not known.
func StateBytes(p Plugin, envs int) int64 {
	saver, ok := p.(Saver)
	if !ok {
		return 0
	}
	n, err := saver.StateBytes(envs)
	if err != nil {
		return 0 // the component says why when it makes them
	}
	return n
}

// MemoryError says that the blocks that environments step into do not fit into their memory.
type MemoryError struct {
	Blocks     int
	Bytes      uint64 // of each block, as far as the environments see it
	Least, End uint64 // see Sized
}

// Error reports the needed and the available memory.
func (e *MemoryError) Error() string {
	what := "1 block"
	if e.Blocks != 1 {
		what = fmt.Sprintf("%d blocks", e.Blocks)
	}
	const mib = 1 << 20
	whose := "a module can address"
	if e.declared() {
		whose = "the module declares to be its most"
	}
	return fmt.Sprintf("%s of %.1f MiB and the module itself take %.1f MiB of an instance's memory, more than the %.1f MiB that %s",
		what, float64(e.Bytes)/mib, float64(e.Least)/mib, float64(e.End)/mib, whose)
}

// Help returns the remedy; smaller names the settings that can be reduced.
func (e *MemoryError) Help(smaller string) string {
	if e.declared() {
		return "build the module without a maximum of memory, or with a larger one; or " + smaller
	}
	return smaller
}

// declared reports whether the module itself says where its memory ends.
func (e *MemoryError) declared() bool { return e.End < 1<<32 }

// CheckMemory checks before the start that an instance of a plugin has memory for so many blocks. The error is a
// *MemoryError.
func CheckMemory(p Plugin, blocks int, s *trajectory.Schema) error {
	sized, ok := p.(Sized)
	if !ok {
		return nil
	}
	least, end := sized.MemoryFor(blocks, s)
	if least <= end {
		return nil
	}
	return &MemoryError{Blocks: blocks, Bytes: uint64(s.GuestBytes), Least: least, End: end}
}

// MaxParamBytes bounds the reset parameters in all blocks that a check or a measurement makes. They have no time, so that no number
// of steps bounds them.
const MaxParamBytes = 1 << 28

// ParamsError says that the reset parameters of a check or a measurement exceed MaxParamBytes.
type ParamsError struct {
	Envs  int
	Bytes int64 // in all blocks
}

// Error reports the parameters' size and the limit.
func (e *ParamsError) Error() string {
	const mib = 1 << 20
	return fmt.Sprintf("reset parameters of %d environments take %.1f MiB in the blocks that are needed, more than %d MiB", e.Envs, float64(e.Bytes)/mib, MaxParamBytes/mib)
}

// Help returns the remedy; smaller names the settings that can be reduced.
func (e *ParamsError) Help(smaller string) string {
	return "describe fewer reset parameters; or " + smaller
}

// CheckParams checks, before any block is made, the size of the reset parameters of environments that use so many blocks at a
// time. The error is a *ParamsError.
func CheckParams(spec *hostabi.EnvSpec, blocks, envs int) error {
	elems := 0
	for _, d := range spec.All(hostabi.RoleResetParam) {
		elems += d.Elems(hostabi.MaxTensorElems)
	}
	if n := 4 * int64(elems) * int64(spec.Agents()) * int64(envs) * int64(blocks); n > MaxParamBytes {
		return &ParamsError{Envs: envs, Bytes: n}
	}
	return nil
}
