package wasm

import (
	"fmt"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/plugins/wasm/guest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/words"
)

var (
	_ env.EnvProber = (*Env)(nil)
	_ env.Examiner  = (*Plugin)(nil)
)

// What Probe checks: nullBytes from address 0 on, which compilers leave free so that a null pointer with the offset
// of a field points there. A stack that ends at address 0 reaches there only when it is nearly full; then it has been
// written without a gap of stackGap from there upwards.
const (
	nullBytes = 1024
	stackGap  = 256
	filler    = 0x5a
)

// probe is the preparation of Probe.
type probe struct {
	inst  *guest.Instance // in which
	words string          // of its newest error
}

// Probe looks for writes through null pointers and for errors that no call returned; see env.EnvProber.
func (e *Env) Probe() (trespass, words string, err error) {
	if err := e.gate.Enter(); err != nil {
		return "", "", err
	}
	defer e.gate.Leave()
	said := e.inst.LastError()
	low, stack := e.lowMemory()
	if e.probe.inst == e.inst {
		trespass = nullWrite(low, stack)
		if said != e.probe.words {
			words = said
		}
	}
	e.probe = probe{e.inst, said}
	for _, piece := range [][]byte{low, stack} {
		for i := range piece {
			piece[i] = filler
		}
	}
	return trespass, words, nil
}

// lowMemory returns the memory below nullBytes that belongs to nothing between two calls, and the part of the stack
// above it if the stack ends at address 0.
func (e *Env) lowMemory() (low, stack []byte) {
	mem := e.inst.Mem.Bytes()
	s, end := e.plugin.file.Layout.Stack, min(e.plugin.file.Layout.DataLow, nullBytes, uint32(min(len(mem), nullBytes)))
	if s.Top > end && s.First && uint64(s.Top) <= uint64(len(mem)) {
		stack = mem[end:s.Top]
	}
	return mem[:end], stack
}

// nullWrite describes a write into low memory, or returns "".
func nullWrite(low, stack []byte) string {
	n, last := 0, 0
	for i, b := range low {
		if b != filler {
			n, last = n+1, i
		}
	}
	if n == 0 {
		return ""
	}
	gap := len(low) - 1 - last
	for gap < stackGap && gap-(len(low)-1-last) < len(stack) && stack[gap-(len(low)-1-last)] == filler {
		gap++
	}
	if len(stack) > 0 && gap < stackGap {
		return "" // the stack reached there
	}
	what := "that is a null pointer"
	if len(stack) > 0 {
		what += ", or a stack that is all but full"
	}
	return fmt.Sprintf("writes %d bytes up to address %#x, where nothing lies: %s", n, last, what)
}

// linkersStack is the default size of the stack that wasm-ld reserves. If the stack is after the data, a module does not tell its size:
// zero-initialised data takes room that no section mentions.
const linkersStack = 64 << 10

// Examine reports the effect of a stack overflow in the module's layout; see env.Examiner.
func (p *Plugin) Examine() env.Examination {
	const linker = "link with -Wl,--stack-first, so that an overflow traps; -Wl,-z,stack-size=N makes the stack larger"
	s := p.file.Layout.Stack
	x := env.Examination{Fine: "no function keeps a frame in memory as LLVM's compilers do"}
	if s.Top == 0 {
		return x
	}
	x.Fine = fmt.Sprintf("it ends at address 0 after %s, the largest frame has %d bytes", words.Bytes(uint64(s.Room)), s.Frame)
	switch {
	case s.Frame > s.Room:
		x.Wrong = fmt.Sprintf("%s has local variables of %d bytes, the whole stack has %d", p.file.Layout.FunctionName(s.Function), s.Frame, s.Room)
		x.Help = "put large arrays into the environment's struct, or make the stack larger: -Wl,-z,stack-size=N, with -Wl,--stack-first"
	case !s.First && s.Frame > linkersStack:
		x.Wrong = fmt.Sprintf("%s has local variables of %d bytes, and the stack %d, unless the linker has a larger one; it is after the module's data, which they overwrite",
			p.file.Layout.FunctionName(s.Function), s.Frame, linkersStack)
		x.Help = "put large arrays into the environment's struct, or make the stack larger: -Wl,--stack-first,-z,stack-size=N"
	case !s.First:
		x.Help = linker
		x.Risky = fmt.Sprintf("the stack is after the module's data: one that overflows overwrites that data in silence; the largest frame has %d bytes, in %s",
			s.Frame, p.file.Layout.FunctionName(s.Function))
	}
	return x
}
