package policy

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// ErrUnsupported is wrapped by a backend that cannot compute a network; the message names the node and its operation.
var ErrUnsupported = errors.New("not supported by this backend")

// Unsupported returns ErrUnsupported for a part of a network, such as a node, with its name and its operation.
func Unsupported(part, name string, op fmt.Stringer) error {
	return fmt.Errorf("network: %s %s, %v here: %w", part, name, op, ErrUnsupported)
}

// Network specifies a policy and a value function as a graph: inputs, nodes that compute a tensor of one or more others,
// and heads that read nodes. Rows of a batch are independent: a backend's results for a row do not depend, in any bit,
// on the other rows. Names of nodes and inputs are unique. This version has one value.
type Network struct {
	Format int         `json:"format"` // of this description: Format
	Inputs []Input     `json:"inputs"`
	Nodes  []Node      `json:"nodes"`  // a node comes after the nodes that it reads
	Policy []Dist      `json:"policy"` // one for each action
	Values []ValueHead `json:"values"`
	// Chunk is how many rows are learned from together by a network that keeps a state: gradients flow from a row back
	// to the beginning of its chunk. It does not change the network's outputs. 0 in a network without a state.
	Chunk int `json:"chunk,omitempty"`
}

// Format is the format of networks that this version writes. In format 0, which it reads, a network is a MLP.
const Format = 1

// Node computes a tensor from its inputs, by the one operation that is not nil.
type Node struct {
	Name string   `json:"name" toml:"name" doc:"Name of the node, that later nodes and heads read."`
	In   []string `json:"in" toml:"in" doc:"Inputs and earlier nodes that it reads."`

	Dense      *layer.Dense      `json:"dense,omitempty" toml:"dense"`
	Activation *layer.Activation `json:"activation,omitempty" toml:"activation"`
	Conv2D     *layer.Conv2D     `json:"conv2d,omitempty" toml:"conv2d"`
	MaxPool    *layer.MaxPool    `json:"maxpool,omitempty" toml:"maxpool"`
	Add        *layer.Add        `json:"add,omitempty" toml:"add" doc:"Adds its inputs."`
	Concat     *layer.Concat     `json:"concat,omitempty" toml:"concat" doc:"Joins its inputs to one row."`
	Flatten    *layer.Flatten    `json:"flatten,omitempty" toml:"flatten" doc:"Makes one row of a picture."`
	LayerNorm  *layer.LayerNorm  `json:"layernorm,omitempty" toml:"layernorm" doc:"Normalises each row to mean 0 and deviation 1."`
	Append     *layer.Append     `json:"append,omitempty" toml:"append"`
	GRU        *layer.GRU        `json:"gru,omitempty" toml:"gru"`
	LSTM       *layer.LSTM       `json:"lstm,omitempty" toml:"lstm"`
	External   *layer.External   `json:"external,omitempty" toml:"-"`
}

// Dist is the distribution of one action, by the one field that is not nil.
type Dist struct {
	Action string `json:"action"`
	From   string `json:"from"` // node whose output are its parameters

	Start  int32   `json:"start,omitempty"`  // the environment's number for the first choice of each element
	Bounds *Bounds `json:"bounds,omitempty"` // of a Box

	Categorical      *head.Categorical      `json:"categorical,omitempty"`
	MultiCategorical *head.MultiCategorical `json:"multi_categorical,omitempty"`
	Bernoulli        *head.Bernoulli        `json:"bernoulli,omitempty"`
	Gaussian         *head.Gaussian         `json:"gaussian,omitempty"`
}

// ValueHead is a value function: a node with one element.
type ValueHead struct {
	Name string `json:"name"`
	From string `json:"from"`
}

// attribute returns the only field of a struct that is a T and not nil.
func attribute[T any](of any) (found T, err error) {
	count, v := 0, reflect.ValueOf(of).Elem()
	for i := range v.NumField() {
		if v.Field(i).Kind() != reflect.Pointer || v.Field(i).IsNil() {
			continue
		}
		if a, ok := v.Field(i).Interface().(T); ok {
			found = a
			count++
		}
	}
	if count != 1 {
		return found, fmt.Errorf("has %d operations that this version knows, want one", count)
	}
	return found, nil
}

// Layers lists the kinds of nodes that a table may have, by their names in descriptions.
func Layers() (names []string) {
	t := reflect.TypeFor[Node]()
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("toml") != "-" && t.Field(i).Type.Implements(reflect.TypeFor[layer.Op]()) {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}

// Op returns the operation of a node, or an error if it has none or several.
func (n *Node) Op() (layer.Op, error) { return attribute[layer.Op](n) }

// Of returns the distribution, or an error if there is none or several.
func (d *Dist) Of() (head.Dist, error) { return attribute[head.Dist](d) }

// Counts returns how many values each element of an action has, nothing for a Box.
func (d *Dist) Counts() []int {
	of, err := d.Of()
	switch {
	case err != nil || of.Continuous():
		return nil
	case d.MultiCategorical != nil:
		return d.MultiCategorical.Counts
	}
	return slices.Repeat([]int{of.Choices() / of.Size()}, of.Size())
}

// Dists returns the distributions of a valid network's actions.
func (n *Network) Dists() []head.Dist {
	list := make([]head.Dist, len(n.Policy))
	for i := range n.Policy {
		list[i], _ = n.Policy[i].Of()
	}
	return list
}

// Bounds of a description's sizes.
const (
	maxInputs  = 1 << 7
	maxNodes   = 1 << 10
	maxActions = 1 << 6
	maxParams  = 1 << 40
)

// Validate reports the first thing about the network that no backend could compute.
func (n *Network) Validate() error {
	if err := n.validate(); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	return nil
}

func (n *Network) validate() error {
	if n.Format != Format {
		return fmt.Errorf("format %d, this version has %d", n.Format, Format)
	}
	if len(n.Inputs) < 1 || len(n.Inputs) > maxInputs || len(n.Policy) < 1 || len(n.Policy) > maxActions || len(n.Values) != 1 || len(n.Nodes) > maxNodes {
		return fmt.Errorf("%d inputs, %d nodes, %d actions and %d values: this version has 1 to %d inputs, 1 to %d actions, one value and %d nodes at most",
			len(n.Inputs), len(n.Nodes), len(n.Policy), len(n.Values), maxInputs, maxActions, maxNodes)
	}
	if err := n.validateInputs(); err != nil {
		return err
	}
	shapes, err := n.Shapes()
	if err != nil {
		return err
	}
	for i := range n.Policy {
		if err := n.Policy[i].validate(shapes); err != nil {
			return fmt.Errorf("action %q%w", n.Policy[i].Action, err)
		}
		if slices.ContainsFunc(n.Policy[:i], func(d Dist) bool { return d.Action == n.Policy[i].Action }) {
			return fmt.Errorf("two actions are called %q", n.Policy[i].Action)
		}
	}
	switch {
	case layer.Elems(shapes[n.Values[0].From]) != 1 || shapes[n.Values[0].From] == nil:
		return fmt.Errorf("value %q of node %q, whose shape is %v", n.Values[0].Name, n.Values[0].From, shapes[n.Values[0].From])
	}
	return n.validateCores()
}

func (d *Dist) validate(shapes map[string][]int) error {
	of, err := d.Of()
	if err != nil {
		return fmt.Errorf(" %w", err)
	}
	if shape := shapes[d.From]; shape == nil || of.Elems() < 1 || of.Elems() != layer.Elems(shape) {
		return fmt.Errorf(": %v of node %q, whose shape is %v", of, d.From, shape)
	}
	if g := d.Gaussian; g != nil && g.Squash != head.Free && g.Squash != head.Tanh {
		return fmt.Errorf(": %v, want no squash or tanh", of)
	}
	if g := d.Gaussian; g != nil && !g.LogStdRange().Within(head.WidestLogStd) {
		return fmt.Errorf(": %v, want a range within %g to %g", of, head.WidestLogStd.Min, head.WidestLogStd.Max)
	}
	return d.checkBounds(of)
}

func (n *Network) validateInputs() error {
	names, elems := map[string]bool{}, 0
	for i := range n.Inputs {
		in := &n.Inputs[i]
		if err := in.validate(); err != nil {
			return err
		}
		if names[in.Path] {
			return fmt.Errorf("two inputs are called %q", in.Path)
		}
		names[in.Path] = true
		if elems += layer.Elems(in.Entered()); elems > layer.MaxElems {
			return fmt.Errorf("inputs of more than %d elements", layer.MaxElems)
		}
	}
	return nil
}

// Shapes returns the shape of a row of every input and node by name, or an error for the first without one.
func (n *Network) Shapes() (map[string][]int, error) {
	shapes := map[string][]int{}
	for i := range n.Inputs {
		shapes[n.Inputs[i].Path] = n.Inputs[i].Entered()
	}
	total := 0
	for i := range n.Nodes {
		node := &n.Nodes[i]
		op, err := node.Op()
		if err != nil {
			return nil, fmt.Errorf("node %q %w", node.Name, err)
		}
		in := node.inputs(shapes)
		if k := slices.IndexFunc(in, func(s []int) bool { return s == nil }); k >= 0 {
			return nil, fmt.Errorf("node %q reads %q, which is none before it", node.Name, node.In[k])
		}
		shape, err := op.Shape(in)
		if err != nil {
			return nil, fmt.Errorf("node %q: %w", node.Name, err)
		}
		if shapes[node.Name] != nil {
			return nil, fmt.Errorf("two nodes are called %q", node.Name)
		}
		shapes[node.Name] = shape
		for _, t := range op.Params(in) {
			if total += product(t.Shape); total > maxParams {
				return nil, fmt.Errorf("more than %d parameters", maxParams)
			}
		}
	}
	return shapes, nil
}

func (n *Node) inputs(shapes map[string][]int) [][]int {
	in := make([][]int, len(n.In))
	for i, name := range n.In {
		in[i] = shapes[name]
	}
	return in
}

// Acting returns the names of the inputs and nodes that actions depend on: all others compute the value alone.
func (n *Network) Acting() map[string]bool {
	acting := map[string]bool{}
	for i := range n.Policy {
		acting[n.Policy[i].From] = true
	}
	for i := range slices.Backward(n.Nodes) {
		if node := &n.Nodes[i]; acting[node.Name] {
			for _, in := range node.In {
				acting[in] = true
			}
		}
	}
	return acting
}

// Actions returns the number of choices of the first action, 0 for a Box.
func (n *Network) Actions() int {
	d, err := n.Policy[0].Of()
	if err != nil {
		return 0
	}
	return d.Choices()
}

// Clone returns a copy that shares nothing that its owner could change but the operations' attributes.
func (n *Network) Clone() Network {
	return Network{Format: n.Format, Inputs: slices.Clone(n.Inputs), Nodes: slices.Clone(n.Nodes),
		Policy: slices.Clone(n.Policy), Values: slices.Clone(n.Values), Chunk: n.Chunk}
}

// Param is one tensor of the canonical parameter vector: float32, row-major.
type Param struct {
	Name   string // such as actor.0.weight, critic.head.bias
	Rows   int    // product of all axes but the last: inputs of a weight, 1 for a bias
	Cols   int    // last axis: outputs
	Offset int    // of element 0 in the vector

	Shape []int // of the tensor as others read it: [in][out] of a weight, [out] of a bias

	gain, fill float64
}

// Params returns the layout of the canonical vector of a valid network, the same for every backend: the tensors of each
// node in the order of nodes.
func (n *Network) Params() []Param { return slices.Concat(n.paramsByNode()...) }

func (n *Network) paramsByNode() [][]Param {
	shapes, err := n.Shapes()
	if err != nil {
		panic(err)
	}
	params, end := make([][]Param, len(n.Nodes)), 0
	for i := range n.Nodes {
		op, _ := n.Nodes[i].Op()
		for _, t := range op.Params(n.Nodes[i].inputs(shapes)) {
			last := len(t.Shape) - 1
			p := Param{Name: n.Nodes[i].Name + "." + t.Name, Rows: layer.Elems(t.Shape[:last]), Cols: t.Shape[last], Offset: end,
				Shape: t.Shape, gain: t.Gain, fill: t.Fill}
			params[i] = append(params[i], p)
			end += p.Rows * p.Cols
		}
	}
	return params
}

// ParamCount returns the length of the canonical vector.
func (n *Network) ParamCount() int {
	count := 0
	for _, p := range n.Params() {
		count += p.Rows * p.Cols
	}
	return count
}

// Lines describes the network, one input, node or head a line, without initial values.
func (n *Network) Lines() []string {
	var lines []string
	for i := range n.Inputs {
		lines = append(lines, n.Inputs[i].String())
	}
	for i := range n.Nodes {
		op, err := n.Nodes[i].Op()
		if err != nil {
			op = nil
		}
		lines = append(lines, fmt.Sprintf("%s = %v of %s", n.Nodes[i].Name, op, strings.Join(n.Nodes[i].In, ", ")))
	}
	for i := range n.Policy {
		d, _ := n.Policy[i].Of()
		lines = append(lines, fmt.Sprintf("action %s = %v of %s%s", n.Policy[i].Action, d, n.Policy[i].From, n.Policy[i].within()))
	}
	for _, v := range n.Values {
		lines = append(lines, fmt.Sprintf("value %s of %s", v.Name, v.From))
	}
	return lines
}

// Hash is the same for networks that compute the same function of the same parameters.
func (n *Network) Hash() [sha256.Size]byte {
	return sha256.Sum256([]byte(strings.Join(n.Lines(), "\n")))
}

// UnmarshalJSON reads a description of any format up to Format. Validate says whether it is a network.
func (n *Network) UnmarshalJSON(data []byte) error {
	var format struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(data, &format); err != nil {
		return err
	}
	switch format.Format {
	case 0:
		var m MLP
		err := json.Unmarshal(data, &m)
		*n = m.Network()
		return err
	case Format:
		type plain Network
		var p plain
		err := json.Unmarshal(data, &p)
		*n = Network(p)
		return err
	}
	return fmt.Errorf("network: format %d, this version has %d", format.Format, Format)
}
