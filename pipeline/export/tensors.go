package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// Names besides those of parameters.
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
		shape := []int{p.Network.Obs()}
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

// compute is the reference of the network, in float64.
func (p *Policy) compute(obs []float32, rows int) (logits, values []float64, err error) {
	elems := p.Network.Obs()
	if len(obs) != rows*elems {
		return nil, nil, fmt.Errorf("%d observed elements, want %d", len(obs), rows*elems)
	}
	x := obs
	if p.Network.NormalizeObs() {
		x = make([]float32, len(obs))
		for i, v := range obs {
			e := i % elems
			x[i] = max(-policy.ObsClip, min(policy.ObsClip, (v-p.Weights.ObsMean[e])*p.Weights.ObsScale[e]))
		}
	}
	heads, values := policy.NewGraph(&p.Network, p.Weights.Params).Forward(x, rows)
	return heads[0], values, nil
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
	return p.compute, nil
}
