package trajectory

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/hostabi"
)

// Column names one quantity of a trajectory. T is the number of steps of the block, N its environments.
type Column uint8

// Columns. Those before ColLogProb lie in the region that the guest can write; the rest only the host touches.
const (
	ColAction     Column = iota // [T][N] i32, written by inference, read by the guest and, checked, by the learner
	ColObs                      // [T+1][N][obs] as described by the environment
	ColReward                   // [T][N] f32, raw
	ColTerminated               // [T][N] u8, 0 or 1
	ColTruncated                // [T][N] u8, 0 or 1; 0 where terminated is 1 once the block is committed
	ColMask                     // [T+1][N][actions] u8, only with an action mask
	ColFinalObs                 // [N][obs], newest last observation of each environment

	ColLogProb       // [T][N] f32, of the action under the policy that acted
	ColValue         // [T+1][N] f32, V(obs[t]) under the policy that acted
	ColBootstrap     // [T][N] f32, V(last observation) where truncated[t], else undefined
	ColValid         // [T][N] u8, 0 for rows that belong to no episode (phantom steps)
	ColPolicyVersion // [T+1] u64, policy version that wrote value[t] and action[t]
	ColPluginVersion // [T][N] u64, version of the environment that made the row: as Meta.PluginVersion
	ColMeta          // one Meta
	columns
)

var columnNames = [columns]string{"action", "obs", "reward", "terminated", "truncated", "action_mask", "final_obs",
	"log_prob", "value", "bootstrap_value", "valid", "policy_version", "plugin_version", "meta"}

// String returns the column's name.
func (c Column) String() string {
	if c < columns {
		return columnNames[c]
	}
	return "column?"
}

// Alignment of columns and of the guest's region, in bytes.
const (
	columnAlign = 64
	pageBytes   = 4096
)

// ErrShape is returned for a block that would have no steps, no environments or too many bytes.
var ErrShape = errors.New("trajectory shape not accepted")

// MaxBlockBytes bounds one block, so that offsets fit a guest's 32-bit memory with room to spare.
const MaxBlockBytes = 1 << 30

// Shape is the size of a block and the choice between its two layouts.
type Shape struct {
	Steps int // T, 1 or more
	Envs  int // N, 1 or more
	// SoA lays observations out as [elem][env] instead of [env][elem]; only for environments with
	// hostabi.CapStrides.
	SoA bool
}

// Layout says where a column lies: element (t, env, i) is at Offset + t*StrideT + env*StrideEnv + i*StrideElem
// bytes into the block. A column is dense, it fills Bytes bytes without gaps; that of a part of the environments
// (see Schema.Slice) has the other environments' elements between its own, and RowBytes of a row reach from its
// first element to its last.
type Layout struct {
	DType      hostabi.DType
	Rows       int // T, T+1 or 1
	Envs       int // N, or 1 for a column with one element per row
	Elems      int // elements per environment
	Offset     int
	StrideT    int
	StrideEnv  int
	StrideElem int
	RowBytes   int
	Bytes      int
}

// Schema lays out the blocks of one trajectory arena. It is immutable and may be shared.
type Schema struct {
	Spec  hostabi.EnvSpec
	Shape Shape
	// GuestBytes is the length of the region at the start of the block that is mapped into the guest: whole
	// pages. Bytes is the length of the block.
	GuestBytes, Bytes int

	layouts [columns]Layout
	part    bool
}

// NewSchema lays out blocks of that shape for an environment.
func NewSchema(spec hostabi.EnvSpec, shape Shape) (*Schema, error) {
	if shape.Steps < 1 || shape.Envs < 1 || shape.Steps > 1<<20 || shape.Envs > 1<<20 {
		return nil, fmt.Errorf("%w: %d steps of %d environments", ErrShape, shape.Steps, shape.Envs)
	}
	if shape.SoA && spec.Caps&(hostabi.CapStrides|hostabi.CapPreferSoA) == 0 {
		return nil, fmt.Errorf("%w: %s does not take [elem][env] tensors", ErrShape, spec.Name)
	}
	s := &Schema{Spec: spec, Shape: shape}
	t, n := shape.Steps, shape.Envs
	end := 0
	add := func(c Column, dtype hostabi.DType, rows, envs, elems int) {
		l := Layout{DType: dtype, Rows: rows, Envs: envs, Elems: elems, Offset: align(end, columnAlign)}
		l.strides(shape.SoA)
		s.layouts[c] = l
		end = min(l.Offset+l.Bytes, MaxBlockBytes+1)
	}
	add(ColAction, hostabi.I32, t, n, spec.ActionElems())
	add(ColObs, hostabi.F32, t+1, n, spec.ObsElems())
	add(ColReward, hostabi.F32, t, n, 1)
	add(ColTerminated, hostabi.U8, t, n, 1)
	add(ColTruncated, hostabi.U8, t, n, 1)
	if spec.HasMask() {
		add(ColMask, hostabi.U8, t+1, n, spec.Actions())
	}
	add(ColFinalObs, hostabi.F32, 1, n, spec.ObsElems())
	s.GuestBytes = align(end, pageBytes)
	end = s.GuestBytes
	add(ColLogProb, hostabi.F32, t, n, 1)
	add(ColValue, hostabi.F32, t+1, n, 1)
	add(ColBootstrap, hostabi.F32, t, n, 1)
	add(ColValid, hostabi.U8, t, n, 1)
	add(ColPolicyVersion, hostabi.I64, t+1, 1, 1)
	add(ColPluginVersion, hostabi.I64, t, n, 1)
	add(ColMeta, hostabi.U8, 1, 1, metaBytes)
	if end > MaxBlockBytes {
		return nil, fmt.Errorf("%w: %d steps of %d environments with %d observed elements exceed %d bytes",
			ErrShape, t, n, spec.ObsElems(), MaxBlockBytes)
	}
	s.Bytes = align(end, pageBytes)
	return s, nil
}

// strides fills in the dense strides of one layout. One-element columns are the same in both.
func (l *Layout) strides(soa bool) {
	size := l.DType.Bytes()
	l.StrideT = size * l.Envs * l.Elems
	l.StrideEnv, l.StrideElem = size*l.Elems, size
	if soa && l.Elems > 1 {
		l.StrideEnv, l.StrideElem = size, size*l.Envs
	}
	l.RowBytes, l.Bytes = l.StrideT, l.Rows*l.StrideT
}

// Slice returns the schema of the same blocks for whoever works only n of their environments, from environment first
// on: a column with one element or more per environment has just theirs, where they lie; all others are as they are.
func (s *Schema) Slice(first, n int) (*Schema, error) {
	if first < 0 || n < 1 || first > s.Shape.Envs || n > s.Shape.Envs-first {
		return nil, fmt.Errorf("%w: environments %d to %d of %d", ErrShape, first, first+n-1, s.Shape.Envs)
	}
	part := *s
	part.Shape.Envs, part.part = n, true
	for c := range part.layouts {
		l := &part.layouts[c]
		if l.Bytes == 0 || Column(c) == ColPolicyVersion || Column(c) == ColMeta {
			continue
		}
		l.Offset += first * l.StrideEnv
		l.Envs = n
		l.RowBytes = (n-1)*l.StrideEnv + (l.Elems-1)*l.StrideElem + l.DType.Bytes()
		l.Bytes = (l.Rows-1)*l.StrideT + l.RowBytes
	}
	return &part, nil
}

// Part reports whether the schema was made by Slice: its columns have gaps, and its Shape does not tell where they lie.
func (s *Schema) Part() bool { return s.part }

func align(n, to int) int { return (n + to - 1) / to * to }

// Layout returns where a column lies; ok is false for a column that this environment does not have.
func (s *Schema) Layout(c Column) (l Layout, ok bool) {
	if c >= columns {
		return Layout{}, false
	}
	l = s.layouts[c]
	return l, l.Bytes > 0
}
