package export

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// interpreter is interpreter/policy.c, built by examples/plugins/build.
//
//go:embed interpreter/policy.wasm
var interpreter []byte

// Header is the page of C that says how a policy is used as a WebAssembly module, and its name.
//
//go:embed interpreter/rlhost_policy.h
var Header []byte

// HeaderName is the file name of Header.
const HeaderName = "rlhost_policy.h"

// Sections of modules.
const (
	sectionCustom = 0
	sectionMemory = 5
	sectionData   = 11
)

const (
	programAt     = 1 << 16   // where the interpreter looks for a program
	wasmHead      = 8         // bytes of the magic and the version
	wasmPage      = 1 << 16   // bytes
	wasmMost      = 1<<32 - 1 // bytes of a memory
	moduleSection = "rlhost.policy"
)

// Machine runs the functions of a module that imports nothing.
type Machine interface {
	// Call calls an export with numbers as they lie in memory.
	Call(name string, args ...uint64) (uint64, error)
	// Memory is the module's memory, until the next call.
	Memory() []byte
	Close() error
}

// section is one of a module's.
type section struct {
	id   byte
	body []byte
}

// encodeModule puts the program of a policy into the memory of the interpreter.
func encodeModule(p *Policy) ([]byte, error) {
	x, err := newProgram(p)
	if err != nil {
		return nil, err
	}
	size := uint64(programAt) + 4*(uint64(x.imageAt)+uint64(len(x.image)))
	if size > wasmMost {
		return nil, fmt.Errorf("a network of %d parameters in a WebAssembly module is %w: its memory has 4 GiB at most", p.Network.ParamCount(), policy.ErrUnsupported)
	}
	head, image := x.bytes()
	about, err := json.Marshal(description{&p.Network, p.About, p.inputs(), p.Valueless})
	if err != nil {
		return nil, err
	}
	out := bytes.NewBuffer(bytes.Clone(interpreter[:wasmHead]))
	err = eachSection(interpreter, func(s section) error {
		if s.id == sectionMemory {
			s.body = append([]byte{1, 0}, leb((size+wasmPage-1)/wasmPage)...)
		}
		if s.id != sectionCustom { // names, for debuggers
			s.write(out)
		}
		return nil
	})
	data := section{sectionData, leb(2)}
	for _, segment := range []struct {
		at   uint32
		data []byte
	}{{programAt, head}, {programAt + 4*x.imageAt, image}} {
		data.body = append(append(data.body, 0, i32Const), signedLEB(int32(segment.at))...)
		data.body = append(append(append(data.body, end), leb(uint64(len(segment.data)))...), segment.data...)
	}
	data.write(out)
	(&section{sectionCustom, append(append(leb(uint64(len(moduleSection))), moduleSection...), about...)}).write(out)
	return out.Bytes(), err
}

// description is the content of the custom section.
type description struct {
	Network *policy.Network   `json:"network"`
	About   map[string]string `json:"about"`
	// Inputs are the paths of the network's inputs that an observation has, in its order.
	Inputs []string `json:"inputs"`
	// Valueless is Policy.Valueless.
	Valueless bool `json:"valueless,omitempty"`
}

// inputs are the paths of the inputs that the file has.
func (p *Policy) inputs() (paths []string) {
	wanted := p.written()
	for i := range p.Network.Inputs {
		if path := p.Network.Inputs[i].Path; wanted(path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// Instructions of constant expressions.
const (
	i32Const = 0x41
	end      = 0x0b
)

// eachSection visits the sections of a module.
func eachSection(module []byte, visit func(s section) error) error {
	for rest := module[wasmHead:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return errors.New("a section ends outside of the module")
		}
		if err := visit(section{rest[0], rest[1+n : 1+n+int(size)]}); err != nil {
			return err
		}
		rest = rest[1+n+int(size):]
	}
	return nil
}

func (s *section) write(to *bytes.Buffer) {
	to.WriteByte(s.id)
	to.Write(leb(uint64(len(s.body))))
	to.Write(s.body)
}

func leb(n uint64) []byte { return binary.AppendUvarint(nil, n) }

func signedLEB(n int32) (b []byte) {
	for {
		low := byte(n & 0x7f)
		if n >>= 7; n == 0 && low&0x40 == 0 || n == -1 && low&0x40 != 0 {
			return append(b, low)
		}
		b = append(b, low|0x80)
	}
}

// openModule computes samples by running the module, row by row.
func openModule(file []byte, m Machine) (model, error) {
	d, err := describedBy(file)
	if err != nil {
		return nil, err
	}
	p := &Policy{Network: *d.Network, Valueless: d.Valueless}
	return func(s *Samples) (*outputs, error) {
		if len(s.Actions) != len(p.Network.Policy) {
			return nil, fmt.Errorf("%d actions, want %d", len(p.Network.Policy), len(s.Actions))
		}
		out := &outputs{params: make([][]float64, len(s.Actions)), actions: make([][]float64, len(s.Actions)), acts: !p.written()(p.Network.Values[0].From)}
		for row := range s.Rows {
			if err := p.step(m, s, row, out); err != nil {
				return nil, err
			}
		}
		return out, nil
	}, nil
}

// step computes a row of samples and appends its results.
func (p *Policy) step(m Machine, s *Samples, row int, out *outputs) error {
	x := called{Machine: m}
	obs, mask, state, from, at := x.call("rl_policy_obs"), x.call("rl_policy_mask"), x.call("rl_policy_state"), row*s.width, 0
	written := p.written()
	for i := range p.Network.Inputs {
		in := &p.Network.Inputs[i]
		n := in.Frames() * layer.Elems(in.Shape)
		if written(in.Path) {
			x.write(obs+4*uint64(at), s.Obs[from:from+n])
			at += n
		}
		from += n
	}
	for k := range s.Actions {
		a := &s.Actions[k]
		if a.of.Continuous() {
			continue
		}
		n := a.of.Choices()
		if len(a.Mask) > 0 {
			x.bytes(mask, n, func(b []byte) { copy(b, a.Mask[row*n:(row+1)*n]) })
		}
		mask += uint64(n)
	}
	x.write(state, s.State[row*s.kept:(row+1)*s.kept])
	actions := x.call("rl_policy_act")
	params := x.call("rl_policy_params")
	for k := range s.Actions {
		size, elems := s.Actions[k].of.Size(), s.Actions[k].of.Elems()
		out.actions[k] = append(out.actions[k], x.read(&actions, size)...)
		out.params[k] = append(out.params[k], x.read(&params, elems)...)
	}
	out.state = append(out.state, x.read(&state, s.kept)...)
	if value := x.call("rl_policy_value"); !out.acts {
		out.values = append(out.values, float64(math.Float32frombits(uint32(value))))
	}
	return x.err
}

// called is a machine with the first error of its calls.
type called struct {
	Machine
	err error
}

func (x *called) call(name string) (result uint64) {
	if x.err == nil {
		result, x.err = x.Call(name)
	}
	return result
}

// bytes visits n bytes of the memory.
func (x *called) bytes(at uint64, n int, visit func(b []byte)) {
	if x.err != nil {
		return
	}
	memory := x.Memory()
	if at > uint64(len(memory)) || uint64(n) > uint64(len(memory))-at {
		x.err = fmt.Errorf("%d bytes at %d lie outside of its memory", n, at)
		return
	}
	visit(memory[at:][:n])
}

func (x *called) write(at uint64, numbers []float32) {
	x.bytes(at, 4*len(numbers), func(b []byte) {
		for i, v := range numbers {
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
		}
	})
}

// read returns n numbers, and moves the place behind them.
func (x *called) read(at *uint64, n int) []float64 {
	numbers := make([]float64, n)
	x.bytes(*at, 4*n, func(b []byte) {
		for i := range numbers {
			numbers[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
		}
	})
	*at += 4 * uint64(n)
	return numbers
}

// describedBy reads the description of a module.
func describedBy(file []byte) (d description, err error) {
	if len(file) < wasmHead {
		return d, errors.New("no module")
	}
	name := append(leb(uint64(len(moduleSection))), moduleSection...)
	err = eachSection(file, func(s section) error {
		if text, ok := bytes.CutPrefix(s.body, name); ok && s.id == sectionCustom {
			return json.Unmarshal(text, &d)
		}
		return nil
	})
	if err == nil && d.Network == nil {
		err = errors.New("it does not describe its network")
	}
	if err == nil {
		err = d.Network.Validate()
	}
	return d, err
}
