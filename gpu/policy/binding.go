package policy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/hostabi"
)

// ObsPath returns the path of an environment's observation, by its place among them.
func ObsPath(spec *hostabi.EnvSpec, index int) string {
	all := spec.All(hostabi.RoleObservation)
	if all[index].Path != "" {
		return all[index].Path
	}
	return Numbered(onlyObs, index)
}

// Numbered returns the path of the tensor with that index among tensors that share a name: obs, obs/1 and so on.
func Numbered(name string, index int) string {
	if index == 0 {
		return name
	}
	return name + "/" + strconv.Itoa(index)
}

// indexOf is the inverse of Numbered, or -1 for a path that has another name. It does not allocate.
func indexOf(name, path string) int {
	rest, ok := strings.CutPrefix(path, name)
	if ok && rest == "" {
		return 0
	}
	number, slash := strings.CutPrefix(rest, "/")
	if i, err := strconv.Atoi(number); ok && slash && err == nil && i > 0 {
		return i
	}
	return -1
}

// onlyObs is the path of an observation that has none.
const onlyObs = "obs"

// obsIndex returns the place of the observation with a path, or -1. It does not allocate.
func obsIndex(spec *hostabi.EnvSpec, path string) int {
	index := 0
	for i := range spec.Tensors {
		t := &spec.Tensors[i]
		if t.Role != hostabi.RoleObservation {
			continue
		}
		if t.Path == path || t.Path == "" && indexOf(onlyObs, path) == index {
			return index
		}
		index++
	}
	return -1
}

// column returns the columns of an input in blocks of a schema: the values at a row, and the values before row 0.
func (in *Input) column(s *trajectory.Schema) (now, past trajectory.Column, err error) {
	switch in.From {
	case LastAction:
		index := indexOf(string(LastAction), in.Path)
		if index < 0 {
			return 0, 0, fmt.Errorf("%w: no action is called %q", ErrDataset, in.Path)
		}
		now, past = trajectory.Action.At(index), trajectory.PastAction.At(index)
	case LastExecuted:
		index := indexOf(string(LastExecuted), in.Path)
		if index < 0 {
			return 0, 0, fmt.Errorf("%w: no action is called %q", ErrDataset, in.Path)
		}
		now, past = trajectory.Executed.At(index), trajectory.PastExecuted.At(index)
	case LastReward:
		now, past = trajectory.Reward, trajectory.PastReward
		if in.Learned && s.Has(trajectory.PastShaped) {
			now, past = trajectory.ShapedReward, trajectory.PastShaped
		}
	default:
		index := obsIndex(&s.Spec, in.Path)
		if index < 0 {
			return 0, 0, fmt.Errorf("%w: %s has no observation %q", ErrDataset, s.Spec.Name, in.Path)
		}
		now, past = trajectory.Obs.At(index), trajectory.PastObs.At(index)
	}
	l, ok := s.Layout(now)
	switch {
	case !ok || l.Elems != layer.Elems(in.Shape):
		return 0, 0, fmt.Errorf("%w: %v has %d elements, the network's input %s has %d", ErrDataset, now, l.Elems, in.Path, layer.Elems(in.Shape))
	case l.DType != in.Type():
		return 0, 0, fmt.Errorf("%w: %v has elements of %v, the network's input %s of %v", ErrDataset, now, l.DType, in.Path, in.Type())
	case in.From != "" && !s.Has(past):
		return 0, 0, fmt.Errorf("%w: blocks do not keep %v, which the network's input %s reads", ErrDataset, past, in.Path)
	case in.lag(0) > s.Shape.Past:
		return 0, 0, fmt.Errorf("%w: blocks keep %d rows before their first, the network's input %s reads %d",
			ErrDataset, s.Shape.Past, in.Path, in.lag(0))
	}
	return now, past, nil
}

// Binding says where the inputs of a network lie in the blocks of one schema.
type Binding struct {
	Schema *trajectory.Schema
	frames []frame
	now    []trajectory.Layout // by input
	before []trajectory.Layout
	ages   trajectory.Layout
	aged   bool
	state  int // elements that the network keeps
}

// frame is one frame of an input.
type frame struct {
	now, past trajectory.Column
	lag       int
}

// Bind finds a valid network's inputs in the blocks of a schema, or says which does not fit.
func (n *Network) Bind(s *trajectory.Schema) (*Binding, error) {
	if err := n.holds(s); err != nil {
		return nil, err
	}
	b := &Binding{Schema: s, state: n.State()}
	for i := range n.Inputs {
		in := &n.Inputs[i]
		now, past, err := in.column(s)
		if err != nil {
			return nil, err
		}
		for f := range in.Frames() {
			b.frames = append(b.frames, frame{now, past, in.lag(f)})
		}
		l, _ := s.Layout(now)
		b.now = append(b.now, l)
		l, _ = s.Layout(past)
		b.before = append(b.before, l)
	}
	b.ages, b.aged = s.Layout(trajectory.Age)
	return b, nil
}

// Row appends the frames of a row of a block to dst, as Request.Obs has them.
func (b *Binding) Row(dst []trajectory.Matrix, tr trajectory.Trajectory, row int) []trajectory.Matrix {
	for _, f := range b.frames {
		dst = append(dst, f.at(tr, row-f.lag))
	}
	return dst
}

// Final is Row for the last observations of episodes that ended in step t.
func (b *Binding) Final(dst []trajectory.Matrix, tr trajectory.Trajectory, t int) []trajectory.Matrix {
	for _, f := range b.frames {
		if f.now.Kind() == trajectory.Obs && f.lag == 0 {
			dst = append(dst, tr.Row(trajectory.FinalObs.At(f.now.Index()), 0))
			continue
		}
		dst = append(dst, f.at(tr, t+1-f.lag))
	}
	return dst
}

// at returns the frame in a row, which may be one before the block's first.
func (f *frame) at(tr trajectory.Trajectory, row int) trajectory.Matrix {
	if row >= 0 {
		return tr.Row(f.now, row)
	}
	return tr.Row(f.past, tr.Schema.Shape.Past+row)
}

// Ages returns how many rows the episodes of a row have been running, 255 at most, or nil where the network does not
// depend on it.
func (b *Binding) Ages(tr trajectory.Trajectory, row int) []byte {
	if !b.aged {
		return nil
	}
	return tr.Row(trajectory.Age, row).Data
}

// Gather enters rows of a dataset.
type Gather struct {
	entry   *Entry
	dataset *Dataset
	bound   *Binding
}

// Open prepares the gather of a checked dataset's rows for a network and its entry. It does not allocate when it is used
// again for the same blocks.
func (g *Gather) Open(n *Network, e *Entry, d *Dataset) {
	g.entry, g.dataset = e, d
	e.Mean, e.Scale = d.ObsMean, d.ObsScale
	if s := d.Blocks[0].Schema; g.bound == nil || g.bound.Schema != s {
		g.bound, _ = n.Bind(s)
	}
}

// Close forgets the dataset.
func (g *Gather) Close() { g.dataset = nil }

// Row enters a row of the dataset, t*E + e. Memory between the segments is not touched.
func (g *Gather) Row(to EnteredRow, row uint32) {
	d, b := g.dataset, g.bound
	envs := uint32(d.Envs())
	t, e := int(row/envs), int(row%envs)
	width := d.BlockEnvs()
	mem, env := d.Blocks[e/width].Mem, e%width
	age := maxAge
	if b.aged {
		age = int(mem[b.ages.Offset+t*b.ages.StrideT+env*b.ages.StrideEnv])
	}
	for i := range g.entry.inputs {
		x := &g.entry.inputs[i]
		if x.From != "" && age == 0 {
			to.clear(x)
			continue
		}
		for f := range x.Frames() {
			l, at := &b.now[i], t-min(x.lag(f), age)
			if at < 0 {
				l = &b.before[i]
				at += l.Rows
			}
			x.enter(to, f, mem[l.Offset+at*l.StrideT+env*l.StrideEnv:], l.StrideElem, g.entry.Mean, g.entry.Scale)
		}
	}
}
