package policy

import (
	"fmt"
	"math"
)

// MLP is the reference of a network: plain loops in float64 over the canonical vector. Tests hold backends to it.
type MLP struct {
	Network Network
	Params  []float64 // canonical vector
	Grad    []float64 // of the same length, added to by Backward

	x       []float64 // observations of the last Forward
	rows    int
	outputs map[string][]float64 // per layer [rows][out], of the last Forward
}

// NewMLP returns the reference of a network with the given parameters.
func NewMLP(n Network, params []float32) *MLP {
	m := &MLP{Network: n, Params: make([]float64, len(params)), Grad: make([]float64, len(params))}
	for i, p := range params {
		m.Params[i] = float64(p)
	}
	return m
}

// encoders names the encoders that the actor's and the critic's heads read.
func (m *MLP) encoders() (actor, critic string) {
	if m.Network.ShareTrunk {
		return "trunk", "trunk"
	}
	return "actor", "critic"
}

// Forward computes logits [rows][Actions] and values [rows] of observations x [rows][Obs], normalised already.
func (m *MLP) Forward(x []float32, rows int) (logits, value []float64) {
	m.rows, m.outputs = rows, map[string][]float64{}
	m.x = make([]float64, rows*m.Network.Obs)
	for i := range m.x {
		m.x[i] = float64(x[i])
	}
	actor, critic := m.encoders()
	for _, encoder := range []string{actor, critic} {
		h := m.x
		for i := range m.Network.Hidden {
			name := layerName(encoder, i)
			h = m.dense(name, h, func(v float64) float64 { return activate(m.Network.Activation, v) })
			m.outputs[name] = h
		}
	}
	linear := func(v float64) float64 { return v }
	return m.dense("actor.head", m.last(actor), linear), m.dense("critic.head", m.last(critic), linear)
}

func layerName(encoder string, i int) string { return fmt.Sprintf("%s.%d", encoder, i) }

// last is what a head reads of an encoder.
func (m *MLP) last(encoder string) []float64 {
	if n := len(m.Network.Hidden); n > 0 {
		return m.outputs[layerName(encoder, n-1)]
	}
	return m.x
}

// tensors returns the place of a layer's weight [in][out] and bias [out] in the vector.
func (m *MLP) tensors(name string) (weight, bias Param) {
	for _, p := range m.Network.Params() {
		switch p.Name {
		case name + ".weight":
			weight = p
		case name + ".bias":
			bias = p
		}
	}
	return weight, bias
}

func (m *MLP) dense(name string, x []float64, f func(float64) float64) []float64 {
	w, b := m.tensors(name)
	y := make([]float64, m.rows*w.Cols)
	for r := range m.rows {
		out := y[r*w.Cols : (r+1)*w.Cols]
		copy(out, m.Params[b.Offset:])
		for i, xi := range x[r*w.Rows : (r+1)*w.Rows] {
			for j, wij := range m.Params[w.Offset+i*w.Cols:][:w.Cols] {
				out[j] += xi * wij
			}
		}
		for j := range out {
			out[j] = f(out[j])
		}
	}
	return y
}

// Backward adds to Grad the gradient of a loss whose gradients over the outputs of the last Forward are dLogits
// and dValue.
func (m *MLP) Backward(dLogits, dValue []float64) {
	actor, critic := m.encoders()
	dActor := m.denseBack("actor.head", m.last(actor), dLogits)
	dCritic := m.denseBack("critic.head", m.last(critic), dValue)
	if m.Network.ShareTrunk {
		for i := range dActor {
			dActor[i] += dCritic[i]
		}
		m.encoderBack("trunk", dActor)
		return
	}
	m.encoderBack("actor", dActor)
	m.encoderBack("critic", dCritic)
}

func (m *MLP) encoderBack(encoder string, d []float64) {
	for i := len(m.Network.Hidden) - 1; i >= 0; i-- {
		name := layerName(encoder, i)
		for j, h := range m.outputs[name] {
			d[j] *= slope(m.Network.Activation, h)
		}
		below := m.x
		if i > 0 {
			below = m.outputs[layerName(encoder, i-1)]
		}
		d = m.denseBack(name, below, d)
	}
}

// denseBack adds the gradient of a layer and returns that of its input x.
func (m *MLP) denseBack(name string, x, d []float64) []float64 {
	w, b := m.tensors(name)
	dx := make([]float64, len(x))
	for r := range m.rows {
		out := d[r*w.Cols : (r+1)*w.Cols]
		for j, g := range out {
			m.Grad[b.Offset+j] += g
		}
		for i, xi := range x[r*w.Rows : (r+1)*w.Rows] {
			at := w.Offset + i*w.Cols
			for j, g := range out {
				m.Grad[at+j] += g * xi
				dx[r*w.Rows+i] += g * m.Params[at+j]
			}
		}
	}
	return dx
}

func activate(a Activation, x float64) float64 {
	switch {
	case a == Tanh:
		return math.Tanh(x)
	case x > 0:
		return x
	case a == ELU:
		return math.Expm1(x)
	}
	return 0
}

// slope is the derivative of an activation, given its result.
func slope(a Activation, h float64) float64 {
	switch {
	case a == Tanh:
		return 1 - h*h
	case h > 0:
		return 1
	case a == ELU:
		return h + 1
	}
	return 0
}
