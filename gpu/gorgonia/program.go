package gorgonia

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// float is the element type of a program. Backends run float32; float64 lets tests differentiate numerically.
type float interface{ float32 | float64 }

// program is a compiled graph for a fixed number of rows. It has its own tensors and machine: gorgonia
// writes to the headers of the tensors it is given, so that two graphs must not share one, only memory.
type program[F float] struct {
	rows    int
	machine gorgonia.VM

	obs, mask []F // inputs, [rows][obs] and [rows][actions]
	state     []F // input, [rows][state]
	prev      []F // input, [rows][rows]; see memory
	train     trainInputs[F]

	// Outputs, valid after run. The graph has copied them out: the value of a node after a run may be
	// another node's value.
	logProbs []F // [rows][actions], or [rows] of joint actions
	params   []F // [rows][elements] of joint actions: the parameters of their distributions
	entropy  []F // [rows] of joint actions
	value    []F // [rows]
	after    []kept[F]
	loss     gorgonia.Value
	grad     []F // canonical vector
}

// trainInputs are the inputs of a program with a loss, [rows] but for action.
type trainInputs[F float] struct {
	action                                           []F // [rows][actions], one-hot; see joint
	oldLogProb, oldValue, advantage, returns, weight []F
	clipLow, clipHigh, entropy                       []F
}

// compile builds the graph of a model for a number of rows. The parameters are read from params at each run.
// Panics of builder, loss and gorgonia, which panics on graphs that it cannot compile, come back as errors.
func compile[F float](m *model, params []F, rows int) (p *program[F], err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, panicError(r)
		}
	}()
	b := assembly[F]{model: m, graph: gorgonia.NewGraph(), program: &program[F]{rows: rows}}
	if err := b.assemble(params); err != nil {
		return nil, fmt.Errorf("graph of %d rows: %w", rows, err)
	}
	return b.program, nil
}

// panicError makes an error of the panic of a builder, a loss or gorgonia.
func panicError(r any) error {
	if err, ok := r.(error); ok {
		return fmt.Errorf("build graph: %w", err)
	}
	return fmt.Errorf("build graph: %v", r)
}

// run computes the outputs from the inputs.
func (p *program[F]) run() error {
	// A machine that has run is at its end, its registers full.
	p.machine.Reset()
	return p.machine.RunAll()
}

func (p *program[F]) close() error { return p.machine.Close() }

// assembly is a program being built.
type assembly[F float] struct {
	*model
	graph   *gorgonia.ExprGraph
	program *program[F]
	reads   gorgonia.Nodes // statements that copy outputs
}

func (b *assembly[F]) assemble(params []F) error {
	p, n := b.program, &b.network
	weights := b.params(params)
	obs := b.input("obs", n.Obs(), &p.obs)
	choices := n.Actions()
	if b.joint != nil {
		choices = max(b.joint.choices, 1)
	}
	mask := b.input("mask", choices, &p.mask)
	for i := range p.mask {
		p.mask[i] = 1
	}
	b.remember(&weights)
	logits, value, err := b.builder.Heads(n, obs, weights)
	if err != nil {
		return err
	}
	if err := b.checkHeads(logits, value); err != nil {
		return err
	}
	in := &LossInputs{Logits: logits, Value: value, Mask: mask, Config: b.config}
	b.leave(weights.memory)
	p.value = make([]F, p.rows)
	b.read(value, p.value)
	if b.joint != nil {
		in.Action = b.input("action", b.joint.action, &p.train.action)
		if in.logProb, in.entropy, in.drift, err = b.joint.rows(logits, mask, in.Action); err != nil {
			return err
		}
		in.beyond = b.joint.beyond(logits)
		p.params, p.logProbs, p.entropy = make([]F, p.rows*b.elems), make([]F, p.rows), make([]F, p.rows)
		b.read(logits, p.params)
		b.read(in.logProb, p.logProbs)
		b.read(in.entropy, p.entropy)
	} else {
		in.LogProbs = b.dist(logits, mask)
		p.logProbs = make([]F, p.rows*n.Actions())
		b.read(in.LogProbs, p.logProbs)
	}
	if b.loss != nil {
		if err := b.differentiate(in, weights, len(params)); err != nil {
			return err
		}
	}
	return b.link(obs)
}

// params makes a node of each parameter, over the memory of the canonical vector.
func (b *assembly[F]) params(vector []F) Params {
	nodes := Params{nodes: map[string]*Node{}}
	nodes.shapes, _ = b.network.Shapes() // the network is valid
	for _, p := range b.layout {
		end := p.Offset + p.Rows*p.Cols
		node := b.matrix("param "+p.Name, p.Rows, p.Cols, vector[p.Offset:end:end])
		nodes.nodes[p.Name] = node
		nodes.order = append(nodes.order, node)
	}
	return nodes
}

// checkHeads checks a builder's results against its contract, so that a mistake is named here and not by a
// later operation.
func (b *assembly[F]) checkHeads(logits, value *Node) error {
	if logits == nil || value == nil {
		return errors.New("builder returned no node and no error")
	}
	rows := b.program.rows
	if want := (tensor.Shape{rows, b.elems}); !logits.Shape().Eq(want) {
		return fmt.Errorf("builder returned logits of shape %v, want %v", logits.Shape(), want)
	}
	if want := (tensor.Shape{rows, 1}); !value.Shape().Eq(want) {
		return fmt.Errorf("builder returned a value of shape %v, want %v", value.Shape(), want)
	}
	return nil
}

// differentiate adds loss and gradients.
func (b *assembly[F]) differentiate(in *LossInputs, weights Params, size int) error {
	p, t := b.program, &b.program.train
	if b.joint == nil {
		in.Action = b.input("action", b.network.Actions(), &t.action)
	}
	in.OldLogProb = b.input("old log prob", 1, &t.oldLogProb)
	in.OldValue = b.input("old value", 1, &t.oldValue)
	in.Advantage = b.input("advantage", 1, &t.advantage)
	in.Return = b.input("return", 1, &t.returns)
	in.Weight = b.input("weight", 1, &t.weight)
	in.ClipLow = b.input("clip low", 1, &t.clipLow)
	in.ClipHigh = b.input("clip high", 1, &t.clipHigh)
	in.Entropy = b.input("entropy coefficient", 1, &t.entropy)
	loss, err := b.loss(in)
	if err != nil {
		return fmt.Errorf("loss: %w", err)
	}
	if loss == nil || !loss.IsScalar() {
		return errors.New("loss is not a scalar")
	}
	grads, err := gorgonia.Grad(loss, weights.order...)
	if err != nil {
		return differentiateError(err)
	}
	p.grad = make([]F, size)
	end := 0
	for i, g := range grads {
		start := end
		end += weights.order[i].Shape().TotalSize()
		b.read(g, p.grad[start:end:end])
	}
	b.reads = append(b.reads, gorgonia.Read(loss, &p.loss))
	return nil
}

// differentiateError says which parameters the loss does not depend on, where that was it.
func differentiateError(err error) error {
	var diff gorgonia.SymDiffError
	if !errors.As(err, &diff) || len(diff.Nodes()) == 0 {
		return fmt.Errorf("differentiate: %w", err)
	}
	var names []string
	for _, n := range diff.Nodes() {
		names = append(names, n.Name())
	}
	slices.Sort(names)
	return fmt.Errorf("loss does not depend on %s, or cannot be differentiated there", strings.Join(names, ", "))
}

// link compiles the operations that the outputs need, and no others: Grad leaves the gradients of observations and other
// inputs in the graph as well.
func (b *assembly[F]) link(input *Node) error {
	code, registers, err := gorgonia.CompileFunction(b.graph, gorgonia.Nodes{input}, b.reads)
	if err != nil {
		return err
	}
	b.program.machine = gorgonia.NewTapeMachine(b.graph, gorgonia.WithPrecompiled(code, registers), gorgonia.WithEngine(new(matMuler)))
	return nil
}

// input makes an input of the graph over fresh memory of [rows][cols].
func (b *assembly[F]) input(name string, cols int, memory *[]F) *Node {
	rows := b.program.rows
	*memory = make([]F, rows*cols)
	return b.matrix(name, rows, cols, *memory)
}

func (b *assembly[F]) matrix(name string, rows, cols int, memory []F) *Node {
	value := dense(memory, rows, cols)
	return gorgonia.NewMatrix(b.graph, value.Dtype(), gorgonia.WithName(name), gorgonia.WithShape(rows, cols),
		gorgonia.WithValue(value))
}

// read copies a node to memory at each run.
func (b *assembly[F]) read(n *Node, memory []F) {
	s := n.Shape()
	into := new(gorgonia.Value)
	*into = dense(memory, s[0], s[1])
	b.reads = append(b.reads, gorgonia.Read(n, into))
}

func dense[F float](memory []F, rows, cols int) *tensor.Dense {
	return tensor.New(tensor.WithShape(rows, cols), tensor.WithBacking(memory))
}
