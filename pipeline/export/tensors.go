package export

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// Names of tensors that are no parameters.
const (
	meanTensor  = "obs_mean"
	scaleTensor = "obs_scale"
	networkKey  = "network" // of the metadata: policy.Network as JSON
)

// tensors returns the weights by name.
func (p *Policy) tensors() map[string]component.Tensor {
	all := map[string]component.Tensor{}
	for _, t := range p.Network.Params() {
		all[t.Name] = component.Tensor{Shape: t.Shape, Data: p.Weights.Params[t.Offset : t.Offset+t.Rows*t.Cols]}
	}
	if p.Network.NormalizeObs() {
		shape := []int{p.Network.Stats()}
		all[meanTensor] = component.Tensor{Shape: shape, Data: p.Weights.ObsMean}
		all[scaleTensor] = component.Tensor{Shape: shape, Data: p.Weights.ObsScale}
	}
	return all
}

// policyOf puts a network and its tensors together again.
func policyOf(description []byte, tensors map[string]component.Tensor) (*Policy, error) {
	p := &Policy{}
	if err := json.Unmarshal(description, &p.Network); err != nil {
		return nil, fmt.Errorf("its network: %w", err)
	}
	if err := p.Network.Validate(); err != nil {
		return nil, err
	}
	params := p.Network.Params()
	p.Weights.Params = make([]float32, p.Network.ParamCount())
	for _, t := range params {
		data := tensors[t.Name].Data
		if len(data) != t.Rows*t.Cols {
			return nil, fmt.Errorf("tensor %s has %d elements, want %d", t.Name, len(data), t.Rows*t.Cols)
		}
		copy(p.Weights.Params[t.Offset:], data)
	}
	p.Weights.ObsMean, p.Weights.ObsScale = tensors[meanTensor].Data, tensors[scaleTensor].Data
	f := p.Network.Weights()
	return p, f.Check(&p.Weights)
}

// model returns the reference of the policy, in float64.
func (p *Policy) model() model {
	graph := policy.NewGraph(&p.Network, p.Weights.Params)
	numbers := p.Network.Clone()
	for i := range numbers.Inputs {
		numbers.Inputs[i].DType, numbers.Inputs[i].From = "", ""
	}
	entry := policy.NewEntry(&numbers, nil)
	entry.Mean, entry.Scale = p.Weights.ObsMean, p.Weights.ObsScale
	return func(s *Samples) (*outputs, error) {
		request, width := framesOf(&numbers, s)
		if width != s.width || len(s.Actions) != len(p.Network.Policy) {
			return nil, fmt.Errorf("%d observed elements and %d actions, want %d and %d", width, len(p.Network.Policy), s.width, len(s.Actions))
		}
		elems := p.Network.Obs()
		x := make([]float32, s.Rows*elems)
		for row := range s.Rows {
			entry.Request(policy.EnteredRow{Numbers: x[row*elems : (row+1)*elems]}, &request, row)
		}
		if len(s.State) != s.Rows*p.Network.State() {
			return nil, fmt.Errorf("%d elements of state, want %d", len(s.State), s.Rows*p.Network.State())
		}
		out := &outputs{}
		graph.State = s.State
		out.params, out.values = graph.Forward(x, s.Rows)
		out.state = widen(graph.StateOut)
		for k := range p.Network.Policy {
			d := &p.Network.Policy[k]
			if mask := len(s.Actions[k].Mask); mask != 0 && mask != s.Rows*written(d).Choices() {
				return nil, fmt.Errorf("action %q has %v", d.Action, written(d))
			}
			if d.Bernoulli != nil {
				out.params[k] = pairs(out.params[k])
			}
			out.actions = append(out.actions, modes(d, out.params[k], s.Actions[k].Mask, s.Rows))
		}
		return out, nil
	}
}

// framesOf returns the observations of samples by frame, and how many numbers a row has for a network of inputs of float32.
func framesOf(n *policy.Network, s *Samples) (r policy.Request, width int) {
	var memory []byte
	for _, x := range s.Obs {
		memory = binary.LittleEndian.AppendUint32(memory, math.Float32bits(x))
	}
	for i := range n.Inputs {
		elems := layer.Elems(n.Inputs[i].Shape)
		for range n.Inputs[i].Frames() {
			r.Obs = append(r.Obs, trajectory.Matrix{Data: memory[min(4*width, len(memory)):], Rows: s.Rows, Elems: elems,
				StrideRow: 4 * s.width, StrideElem: 4})
			width += elems
		}
	}
	return r, width
}

// pairs puts the logit of the value 0 before each of the value 1.
func pairs(logits []float64) []float64 {
	both := make([]float64, 2*len(logits))
	for i, x := range logits {
		both[2*i+1] = x
	}
	return both
}

// modes returns the most probable action of each row as the environment reads it.
func modes(d *policy.Dist, params []float64, mask []byte, rows int) (actions []float64) {
	of := written(d)
	size, elems, choices := of.Size(), of.Elems(), len(mask)/rows
	for row := range rows {
		action := make([]float64, size)
		of.Mode(params[row*elems:(row+1)*elems], mask[row*choices:(row+1)*choices], action)
		for i := range action {
			if of.Continuous() {
				action[i] = float64(d.Bounds.Within(i, float32(action[i]), d.Gaussian.Squash))
			} else {
				action[i] += float64(d.Start)
			}
		}
		actions = append(actions, action...)
	}
	return actions
}

func encodeTensors(p *Policy) ([]byte, error) {
	description, err := json.Marshal(&p.Network)
	if err != nil {
		return nil, err
	}
	metadata := maps.Clone(p.About)
	if metadata == nil {
		metadata = map[string]string{}
	}
	metadata[networkKey] = string(description)
	return runs.EncodeTensors(p.tensors(), metadata)
}

func openTensors(file []byte) (model, error) {
	tensors, metadata, err := runs.DecodeTensors(file)
	if err != nil {
		return nil, err
	}
	if metadata[networkKey] == "" {
		return nil, errors.New("it does not describe its network")
	}
	p, err := policyOf([]byte(metadata[networkKey]), tensors)
	if err != nil {
		return nil, err
	}
	return p.model(), nil
}
