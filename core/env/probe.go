package env

import (
	"github.com/rlhost/rlhost/core/trajectory"
)

import "fmt"

// EnvProber is optional for an Env, for checks of environments: what a guest did that no block shows. It is not on
// the step path.
type EnvProber interface {
	// Probe returns what has happened since the previous call; the first one only prepares. trespass says what was
	// written outside the environment's memory, words is the error that the environment reported although its calls
	// returned none. Both are empty where nothing is known.
	Probe() (trespass, words string, err error)
}

// Examiner is optional for a Plugin, for checks of environments: what its source alone shows.
type Examiner interface {
	Examine() Examination
}

// Examination is the result of examining a source without running it.
type Examination struct {
	Wrong string // what cannot work, or ""
	Risky string // what may go wrong unseen, or ""
	Fine  string // what was looked at
	Help  string // remedy of what is wrong or risky
}

// Sized is optional for a Plugin whose instances have a memory limit that blocks count against.
type Sized interface {
	// MemoryFor returns how many bytes an instance that steps into so many blocks of a schema takes: the least,
	// and certainly enough, without its environments' own memory. limit is its limit.
	MemoryFor(blocks int, s *trajectory.Schema) (least, enough, limit uint64)
}

// Keeper is optional for a Plugin whose batches keep shared memory of their own besides the blocks that they step into.
type Keeper interface {
	// KeptBytes returns how much a batch of so many environments keeps.
	KeptBytes(envs int) int64
}

// KeptBytes returns how much shared memory a batch of a plugin keeps of its own.
func KeptBytes(p Plugin, envs int) int64 {
	if keeper, ok := p.(Keeper); ok {
		return keeper.KeptBytes(envs)
	}
	return 0
}

// MemoryError says that the blocks that environments step into do not fit into their memory.
type MemoryError struct {
	Blocks             int
	Bytes              uint64 // of each block, as far as the environments see it
	Least, Enough, Has uint64 // see Sized
}

// Error tells what is needed and what there is.
func (e *MemoryError) Error() string {
	what := "1 block"
	if e.Blocks != 1 {
		what = fmt.Sprintf("%d blocks", e.Blocks)
	}
	const mib = 1 << 20
	return fmt.Sprintf("%s of %.1f MiB and the module itself take %.1f MiB of an instance's memory, its limit is %.1f MiB",
		what, float64(e.Bytes)/mib, float64(e.Least)/mib, float64(e.Has)/mib)
}

// Limit returns a limit in MiB that is enough, with a quarter more for the environments themselves.
func (e *MemoryError) Limit() string { return fmt.Sprintf("%dMiB", (e.Enough+e.Enough/4)>>20+1) }

// CheckMemory checks before the start that an instance of a plugin has memory for so many blocks. The error is a
// *MemoryError.
func CheckMemory(p Plugin, blocks int, s *trajectory.Schema) error {
	sized, ok := p.(Sized)
	if !ok {
		return nil
	}
	least, enough, limit := sized.MemoryFor(blocks, s)
	if least <= limit {
		return nil
	}
	return &MemoryError{Blocks: blocks, Bytes: uint64(s.GuestBytes), Least: least, Enough: enough, Has: limit}
}
