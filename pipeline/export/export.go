package export

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rlhost/rlhost/gpu/policy"
)

// Format is a kind of file.
type Format string

// Formats.
const (
	NumPy       Format = "numpy"       // .npz with its reader in Python, which needs NumPy alone
	Safetensors Format = "safetensors" // the weights by name, the network as metadata
	Wasm        Format = "wasm"        // a WebAssembly module that any host runs; Header says how
	ONNX        Format = "onnx"        // opset 17: observations, masks and state to actions, their distribution, the value and the next state
)

// codec is how a format is written and computed from.
type codec struct {
	suffix string
	encode func(p *Policy) ([]byte, error)
	open   func(file []byte) (model, error)
	run    func(file []byte, m Machine) (model, error) // instead of open, for a format that is run
}

// model computes rows from 0 on of samples from a file.
type model func(s *Samples) (*outputs, error)

// outputs are a file's results for rows.
type outputs struct {
	params  [][]float64 // by action: the parameters of its distribution, [rows][elements]; one logit for each choice
	actions [][]float64 // by action: the environment's actions, [rows][elements]
	values  []float64
	state   []float64 // after each row, [rows][policy.Network.State]
	acts    bool      // the file has no values: they need inputs that actions do not
}

// written reports which inputs and nodes the file has. Where values are not wanted, or need inputs that actions do not, the file computes
// actions alone, unless the values need a state; else it has all of them.
func (p *Policy) written() func(name string) bool {
	n, acting := &p.Network, p.Network.Acting()
	needless := p.Valueless || slices.ContainsFunc(n.Inputs, func(in policy.Input) bool { return !acting[in.Path] })
	if !needless || slices.ContainsFunc(n.Nodes, func(x policy.Node) bool { return x.Core() != nil && !acting[x.Name] }) {
		return func(string) bool { return true }
	}
	return func(name string) bool { return acting[name] }
}

var codecs = map[Format]codec{
	NumPy:       {suffix: ".npz", encode: encodeNumPy, open: openNumPy},
	Safetensors: {suffix: ".safetensors", encode: encodeTensors, open: openTensors},
	ONNX:        {suffix: ".onnx", encode: encodeONNX, open: openONNX},
	Wasm:        {suffix: ".wasm", encode: encodeModule, run: openModule},
}

// Formats lists the formats.
func Formats() []Format { return slices.Sorted(maps.Keys(codecs)) }

// Suffix is the suffix of the format's files, with its dot.
func (f Format) Suffix() string { return codecs[f].suffix }

// AboutDescribe is the key of About, for a network that a program computes, with the description of the environment that the program makes its
// policy from: in base64, as the native protocol has it.
const AboutDescribe = "describe"

// AboutArgs is the key of About with the arguments of that policy, as JSON.
const AboutArgs = "args"

// Policy is the policy to write. It is not changed.
type Policy struct {
	Network policy.Network
	Weights policy.Weights
	Masked  []bool            // by action: the environment says which choices are legal; nil where there is no mask
	About   map[string]string // where it comes from, such as run and env_steps
	// Valueless leaves out of a module what computes values alone, unless that has a state.
	Valueless bool
}

func (p *Policy) masked(action int) bool { return action < len(p.Masked) && p.Masked[action] }

// ErrUndescribed is wrapped by Encode for a network that a program alone computes, in a format that says what a network is.
var ErrUndescribed = errors.New("it alone computes its network")

// Encode returns the file of a valid policy. policy.ErrUnsupported names a node that the format has no words for.
func Encode(f Format, p *Policy) ([]byte, error) {
	c, ok := codecs[f]
	if !ok {
		return nil, fmt.Errorf("no format %q: there are %v", f, Formats())
	}
	w := p.Network.Weights()
	if err := w.Check(&p.Weights); err != nil {
		return nil, err
	}
	if e := p.Network.External(); e != nil && (f == ONNX || f == Wasm) {
		return nil, fmt.Errorf("plugin %q: %w", e.Program, ErrUndescribed)
	}
	return c.encode(p)
}
