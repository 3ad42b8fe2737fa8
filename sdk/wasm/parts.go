package wasm

import (
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk"
)

// parts are the observations of a batch of environments that have several; nil where there is one.
type parts struct {
	list []part
	obs  sdk.Observed
	t    uint32 // the row that is written
}

// part is one of several observations, of any element type. Rows are written between open and shut.
type part interface {
	bind(now, last hostabi.Binding, sameStep bool) bool
	open(t uint32, first, count int)
	shut(t uint32, first int)
	end(t uint32, i, agent int) // row t is the last observation of an episode of an agent
	repeat(t uint32, i int)     // row t is that before it
}

func newParts(descs []described, envs int) *parts {
	var names []string
	for i := range descs {
		if descs[i].Role == hostabi.RoleObservation {
			names = append(names, descs[i].space.Name)
		}
	}
	n := len(names)
	p := &parts{obs: sdk.Observed{Names: names, Float32: make([][]float32, n), Uint8: make([][]uint8, n), Int32: make([][]int32, n),
		Int8: make([][]int8, n), Int16: make([][]int16, n), Int64: make([][]int64, n)}}
	for i := range descs {
		d := &descs[i]
		if d.Role != hostabi.RoleObservation {
			continue
		}
		switch d.DType {
		case hostabi.U8:
			p.list = append(p.list, newPart(d, p.obs.Uint8, envs))
		case hostabi.I32:
			p.list = append(p.list, newPart(d, p.obs.Int32, envs))
		case hostabi.I8:
			p.list = append(p.list, newPart(d, p.obs.Int8, envs))
		case hostabi.I16:
			p.list = append(p.list, newPart(d, p.obs.Int16, envs))
		case hostabi.I64:
			p.list = append(p.list, newPart(d, p.obs.Int64, envs))
		default:
			p.list = append(p.list, newPart(d, p.obs.Float32, envs))
		}
	}
	return p
}

// bind takes the places of all observations from the bindings of all tensors.
func (p *parts) bind(list []hostabi.Binding, more int, sameStep bool) bool {
	ok := p.list[0].bind(list[tensorObs], list[tensorFinal], sameStep)
	for i, x := range p.list[1:] {
		ok = x.bind(list[more+2*i], list[more+2*i+1], sameStep) && ok
	}
	return ok
}

// open returns the rows of environments at the time that is written.
func (p *parts) open(first, count int) *sdk.Observed {
	for _, x := range p.list {
		x.open(p.t, first, count)
	}
	return &p.obs
}

func (p *parts) shut(first int) {
	for _, x := range p.list {
		x.shut(p.t, first)
	}
}

func (p *parts) end(i, agent int) {
	for _, x := range p.list {
		x.end(p.t, i, agent)
	}
}

func (p *parts) repeat(i int) {
	for _, x := range p.list {
		x.repeat(p.t, i)
	}
}

// typedPart is a part of one element type.
type typedPart[O sdk.Element] struct {
	now, last tensor[O]
	rows      *[]O // where the environments find their rows
}

func newPart[O sdk.Element](d *described, rows [][]O, envs int) part {
	return &typedPart[O]{now: newTensor[O](*d, envs), last: newTensor[O](*d, envs), rows: &rows[d.Index]}
}

func (x *typedPart[O]) bind(now, last hostabi.Binding, sameStep bool) bool {
	return x.now.bind(now, true) && x.last.bind(last, sameStep)
}

func (x *typedPart[O]) open(t uint32, first, count int) { *x.rows = x.now.rows(t, first, count) }

func (x *typedPart[O]) shut(t uint32, first int) { x.now.write(t, first, *x.rows) }

// end finds the environment's output of this step in its rows.
func (x *typedPart[O]) end(t uint32, i, agent int) {
	x.last.keep(i, agent, agent+1, x.now.rows(t, i, 1))
}

func (x *typedPart[O]) repeat(t uint32, i int) {
	row := x.now.rows(t, i, 1)
	x.now.read(t-1, i, row)
	x.now.write(t, i, row)
}
