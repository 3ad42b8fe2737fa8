package trajectory

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/hostabi"
)

// Alignment of columns and of the guest's region, in bytes.
const (
	columnAlign = 64
	pageBytes   = 4096
)

// ErrShape is returned for a shape with no steps, no environments or too many bytes.
var ErrShape = errors.New("trajectory shape not accepted")

// MaxPolicies bounds how many policies act in the rows of one block.
const MaxPolicies = 32

// MaxPast bounds Memory.Past: episodes are known to be so old.
const MaxPast = 255

// MaxBlockBytes bounds one block, so that offsets fit a guest's 32-bit memory with room to spare.
const MaxBlockBytes = 1 << 30

// Shape is the size of a block and the choice between its two layouts.
type Shape struct {
	Steps int // T, 1 or more
	Envs  int // N, 1 or more
	// SoA lays observations out as [elem][env] instead of [env][elem]; only for environments with
	// hostabi.CapStrides.
	SoA bool
	// Shaped adds ShapedReward.
	Shaped bool
	// Policies are the names of the policies that act in the rows of the blocks, ascending and with a space between them;
	// empty where one acts in all of them. See Schema.Of.
	Policies string
	// Groups is which group of agents each of them plays, by its place; 0 where the environment has one group.
	Groups [MaxPolicies]uint8
	// Versions adds PlayedVersion, for policies that play each episode with one version.
	Versions bool
	// Granted are the names of the columns, ascending and with a space between them, that components other than their writers may
	// write: each lies on separate pages, which can be mapped into a sandbox. Names of columns that the blocks do not have are ignored.
	Granted string
	Memory
}

// grants reports whether a column is one of Granted.
func (s *Shape) grants(c Column) bool {
	return s.Granted != "" && slices.Contains(strings.Fields(s.Granted), c.String())
}

// policies returns the names of several policies, nil where there is one.
func (s *Shape) policies() []string { return strings.Fields(s.Policies) }

// checkPolicies checks how many there are, and which groups of an environment's agents they play.
func (s *Shape) checkPolicies(spec *hostabi.EnvSpec) error {
	names, groups := s.policies(), max(len(spec.Groups), 1)
	if len(names) > MaxPolicies {
		return fmt.Errorf("%w: %d policies act in them, at most %d", ErrShape, len(names), MaxPolicies)
	}
	for place, name := range names {
		if group := int(s.Groups[place]); group >= groups {
			return fmt.Errorf("%w: policy %q plays group %d of %d", ErrShape, name, group, groups)
		}
	}
	return nil
}

// Memory describes the earlier rows that a policy needs to act on a row. Blocks keep them, and with them the age of episodes,
// because rows from before an episode do not count.
type Memory struct {
	// Past is how many rows before its first one a block keeps of observations, actions and rewards.
	Past int
	// Learned says that rewards of earlier rows are read as environments' wrappers have shaped them, Executed that actions are as the environments
	// have taken them.
	Learned  bool `json:",omitempty"`
	Executed bool `json:",omitempty"`
	// State is how many numbers the policy keeps of each environment from row to row. In an episode's first row they are
	// zero, whatever is stored.
	State int
	// Chunk is after how many rows they are stored for good, for a learner that begins there; it divides Shape.Steps. 0 means
	// Shape.Steps.
	Chunk int
}

// And returns the common needs of several policies that act on the rows of the same blocks.
func (m Memory) And(o Memory) Memory {
	a, b := m.Chunk, o.Chunk
	for b != 0 {
		a, b = b, a%b
	}
	return Memory{Past: max(m.Past, o.Past), Learned: m.Learned || o.Learned, Executed: m.Executed || o.Executed, State: max(m.State, o.State), Chunk: a}
}

// chunk returns the rows from one stored state to the next.
func (s *Shape) chunk() int { return cmp.Or(s.Chunk, s.Steps) }

// keeps reports whether blocks of the shape have the columns of a kind.
func (s *Shape) keeps(k *kind) bool {
	switch {
	case k.first == ShapedReward:
		return s.Shaped || s.grants(ShapedReward)
	case k.first == CoreState:
		return s.State > 0
	case k.first == Policy:
		return s.Policies != ""
	case k.first == PlayedVersion:
		return s.Versions
	case k.first == Age:
		return s.Past > 0 || s.State > 0
	case k.first == PastShaped:
		return s.Past > 0 && s.Learned && s.Shaped
	case k.first == Executed:
		return s.Executed
	case k.first == PastExecuted:
		return s.Past > 0 && s.Executed
	}
	return k.flags&Past == 0 || s.Past > 0
}

// columnsOf returns the tensors that have a column of a kind each.
func (s *Shape) columnsOf(k *kind, spec *hostabi.EnvSpec) []hostabi.Tensor {
	list := k.tensors(spec)
	if k.first == Valid || k.first == PolicyVersion {
		for range s.policies() {
			list = append(list, list[0])
		}
	}
	return list
}

// Layout says where a column lies: element (t, env, i) is at Offset + t*StrideT + env*StrideEnv + i*StrideElem bytes into the block, where env
// counts all agents of all environments, environment by environment. A group's tensor also has rows for the other groups' agents, which are
// unused, so that a row is the same agent's in all columns. A column is dense: it fills Bytes bytes without gaps. A column of a part of the
// environments (see Schema.Slice) has the other environments' elements between its own, and RowBytes of a row reach from its first element to
// its last.
type Layout struct {
	Column     Column
	Flags      Flags
	DType      hostabi.DType
	Rows       int   // T, T+1 or 1
	Envs       int   // Schema.Rows, or 1 for a column with one element per row
	Elems      int   // elements per environment, or agent
	Shape      []int // of the elements of one environment: that of an observation, else flat; empty for a scalar
	Offset     int
	StrideT    int
	StrideEnv  int
	StrideElem int
	RowBytes   int
	Bytes      int
	Apart      bool // nothing else lies on its pages; see Shape.Granted

	group int    // whose tensor it is, everyGroup for a column of all agents
	index uint16 // of the tensor among the tensors of its role and group
}

// Schema lays out the blocks of one trajectory arena. It is immutable and may be shared.
type Schema struct {
	Spec  hostabi.EnvSpec
	Shape Shape
	// Agents is how many agents an environment has.
	Agents int
	// GuestBytes is the length of the region at the start of the block that is mapped into the guest: whole
	// pages. Bytes is the length of the block.
	GuestBytes, Bytes int

	columns []Layout
	first   [2 * hostKinds]uint8 // by kind, where its columns begin
	part    bool

	policies []string  // of Shape.Policies
	own      []*Schema // by policy, see Of
	groups   []*Schema // see OfGroup; nil where there is one

	observed, outcome, final, atEnd, past, decided []uint8 // columns with that flag
	moved                                          []uint8 // Observed, or AtBegin: row T is row 0 of the next block
	shared                                         []span  // of tensors that all agents of a group have the same
	always                                         []span  // of Active, for groups whose agents always act
	actions                                        []choice
}

// choice is an action with its mask.
type choice struct {
	tensor   hostabi.Tensor
	action   uint8 // its column
	mask     uint8 // that of its mask
	masked   bool
	multiple bool // it has several elements
}

// NewSchema lays out blocks of that shape for an environment.
func NewSchema(spec hostabi.EnvSpec, shape Shape) (*Schema, error) {
	if shape.Steps < 1 || shape.Envs < 1 || shape.Steps > 1<<20 || shape.Envs > 1<<20 {
		return nil, fmt.Errorf("%w: %d steps of %d environments", ErrShape, shape.Steps, shape.Envs)
	}
	if shape.SoA && spec.Caps&(hostabi.CapStrides|hostabi.CapPreferSoA) == 0 {
		return nil, fmt.Errorf("%w: %s does not take [elem][env] tensors", ErrShape, spec.Name)
	}
	if shape.Past < 0 || shape.Past > MaxPast {
		return nil, fmt.Errorf("%w: %d rows before the first, at most %d", ErrShape, shape.Past, MaxPast)
	}
	if shape.State < 0 || shape.State > MaxBlockBytes/4 || shape.Chunk < 0 || shape.Steps%shape.chunk() != 0 {
		return nil, fmt.Errorf("%w: %d numbers of state each %d of %d steps", ErrShape, shape.State, shape.Chunk, shape.Steps)
	}
	if len(spec.Tensors) > hostabi.MaxTensors {
		return nil, fmt.Errorf("%w: %d tensors, at most %d", ErrShape, len(spec.Tensors), hostabi.MaxTensors)
	}
	if shape.grants(ShapedReward) && (shape.Past == 0 || !shape.Learned) {
		shape.Shaped = false // it adds nothing, and equal columns have equal shapes
	}
	s := &Schema{Spec: spec, Shape: shape, Agents: spec.Agents()}
	if _, turns := spec.Tensor(hostabi.RoleActive); turns && shape.Past > 0 {
		return nil, fmt.Errorf("%w: %s has agents that do not always act, which no policy that reads earlier frames plays yet: "+
			"use one without, or with a core", ErrShape, spec.Name)
	}
	if err := shape.checkPolicies(&spec); err != nil {
		return nil, err
	}
	if s.Rows() > 1<<20 {
		return nil, fmt.Errorf("%w: %d environments of %d agents", ErrShape, shape.Envs, s.Agents)
	}
	for i := range kinds {
		k := &kinds[i]
		if i > 0 && kinds[i-1].flags&Guest != k.flags&Guest {
			s.GuestBytes = align(s.Bytes, pageBytes)
			s.Bytes = s.GuestBytes
		}
		s.first[k.first>>kindAt] = uint8(len(s.columns))
		if !shape.keeps(k) {
			continue
		}
		for index, d := range shape.columnsOf(k, &spec) {
			if k.first == RawAction && d.Discrete() {
				continue
			}
			if k.first == CoreState {
				d.Shape[0] = uint32(shape.State)
			}
			if !s.add(k, index, &d) {
				return nil, fmt.Errorf("%w: %d steps of %d environments with %d observed elements exceed %d bytes",
					ErrShape, shape.Steps, shape.Envs, spec.ObsElems(), MaxBlockBytes)
			}
		}
	}
	s.Bytes = align(s.Bytes, pageBytes)
	s.listColumns()
	s.listSpans()
	s.policies = shape.policies()
	s.divide()
	return s, nil
}

// listColumns fills in the tables that are indexed by a column's place.
func (s *Schema) listColumns() {
	s.observed, s.outcome, s.final = s.with(Observed), s.with(Outcome), s.with(Final)
	s.moved = s.with(Observed | AtBegin)
	s.atEnd, s.past, s.decided = s.with(AtEnd), s.with(Past), s.with(Decided)
	s.actions = s.choices()
}

// divide makes the schemas that Of and OfGroup return.
func (s *Schema) divide() {
	s.groups = nil
	if len(s.Spec.Groups) > 1 {
		for group := range s.Spec.Groups {
			s.groups = append(s.groups, s.onlyGroup(group))
		}
	}
	s.own = make([]*Schema, len(s.policies))
	for place := range s.own {
		own := *s.OfGroup(int(s.Shape.Groups[place]))
		own.part, own.columns = true, slices.Clone(own.columns)
		for _, c := range []Column{Valid, PolicyVersion} {
			own.find(c).Offset = s.find(c.At(1 + place)).Offset
		}
		s.own[place] = &own
	}
}

// Rows returns how many rows a step has: one for each agent of each environment, contiguous for an environment.
func (s *Schema) Rows() int { return s.Shape.Envs * s.Agents }

// RowsOf returns the rows of an environment's agents in a step: first up to, but not including, end.
func (s *Schema) RowsOf(env int) (first, end int) { return env * s.Agents, (env + 1) * s.Agents }

// choices pairs actions with their masks.
func (s *Schema) choices() []choice {
	list := make([]choice, 0, 1)
	for i, d := range s.Spec.All(hostabi.RoleAction) {
		c := choice{tensor: d, action: s.first[Action>>kindAt] + uint8(i), multiple: d.Elems(hostabi.MaxTensorElems) > 1}
		for k, m := range s.Spec.All(hostabi.RoleActionMask) {
			if m.Group == d.Group && m.Pair == d.Index {
				c.mask, c.masked = s.first[Mask>>kindAt]+uint8(k), true
			}
		}
		list = append(list, c)
	}
	return list
}

// with returns which columns have a flag.
func (s *Schema) with(flag Flags) (list []uint8) {
	for i := range s.columns {
		if s.columns[i].Flags&flag != 0 {
			list = append(list, uint8(i))
		}
	}
	return list
}

// add lays out one more column. It reports whether the block has room for it.
func (s *Schema) add(k *kind, index int, d *hostabi.Tensor) bool {
	l := Layout{Column: k.first.At(index), Flags: k.flags, DType: d.DType, Rows: 1, Envs: 1, Shape: []int{},
		Elems: d.Elems(hostabi.MaxTensorElems), Offset: align(s.Bytes, columnAlign), group: everyGroup}
	if k.first == Info && d.Flags&hostabi.TensorEpisode != 0 {
		l.Flags |= AtEnd
	}
	if role := k.role(); role != 0 && role.Rule().Several {
		l.group, l.index = int(d.Group), d.Index
	}
	switch {
	case k.flags&AtT != 0:
		l.Rows = s.Shape.Steps
	case k.flags&AtT1 != 0:
		l.Rows = s.Shape.Steps + 1
	case k.first == CoreState:
		l.Rows = s.Shape.Steps/s.Shape.chunk() + 3
	case k.flags&Past != 0:
		l.Rows = s.Shape.Past
	}
	if k.flags&PerEnv != 0 {
		l.Envs = s.Rows()
	}
	if kind := l.Column.Kind(); kind == Obs || kind == FinalObs || kind == PastObs {
		l.Shape = dimensions(d)
	} else if l.Elems > 1 {
		l.Shape = append(l.Shape, l.Elems)
	}
	l.strides(s.Shape.SoA && !d.Image() && k.first != CoreState)
	if l.Apart = s.Shape.grants(l.Column); l.Apart {
		l.Offset = align(l.Offset, pageBytes)
	}
	s.columns = append(s.columns, l)
	if s.Bytes = l.Offset + l.Bytes; l.Apart {
		s.Bytes = align(s.Bytes, pageBytes)
	}
	return l.StrideT <= MaxBlockBytes/l.Rows && s.Bytes <= MaxBlockBytes
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

// Slice returns the schema of the same blocks for a user of only n of their environments, from environment first on:
// a column with elements for each environment has just theirs, in place; all others are unchanged.
func (s *Schema) Slice(first, n int) (*Schema, error) {
	if first < 0 || n < 1 || first > s.Shape.Envs || n > s.Shape.Envs-first {
		return nil, fmt.Errorf("%w: environments %d to %d of %d", ErrShape, first, first+n-1, s.Shape.Envs)
	}
	part := *s
	part.Shape.Envs, part.part = n, true
	part.columns = slices.Clone(s.columns)
	for i := range part.columns {
		l := &part.columns[i]
		if l.Flags&PerEnv == 0 {
			continue
		}
		l.Offset += first * s.Agents * l.StrideEnv
		l.Envs = n * s.Agents
		l.RowBytes = (l.Envs-1)*l.StrideEnv + (l.Elems-1)*l.StrideElem + l.DType.Bytes()
		l.Bytes = (l.Rows-1)*l.StrideT + l.RowBytes
	}
	part.divide()
	return &part, nil
}

// Of returns the schema of the same blocks for a user of the rows of one policy: Valid and PolicyVersion are the policy's, all other columns
// its agents', as in OfGroup. If a single policy acts in the blocks, all rows belong to it, whatever its name. It does not allocate.
func (s *Schema) Of(policy string) (*Schema, error) {
	place, ok := s.PolicyPlace(policy)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: policy %q acts in none of their rows, those that do: %s", ErrShape, policy, s.Shape.Policies)
	case len(s.own) == 0:
		return s, nil
	}
	return s.own[place], nil
}

// Policies returns the names in Shape.Policies, for reading; nil where one policy acts in all rows.
func (s *Schema) Policies() []string { return s.policies }

// PolicyPlace returns the index of a policy in Shape.Policies, the value of Policy in its rows. It is 0 where one policy acts in
// all rows, whatever its name.
func (s *Schema) PolicyPlace(policy string) (place int, ok bool) {
	if len(s.policies) == 0 {
		return 0, true
	}
	place = slices.Index(s.policies, policy)
	return max(place, 0), place >= 0
}

// StateRow returns the row of CoreState that has the state before row t of the block. The states of rows t-1 and t+1 are in
// other rows. Only states at whole chunks stay when a later row is written.
func (s *Schema) StateRow(t int) int {
	chunk := s.Shape.chunk()
	if t%chunk == 0 {
		return t / chunk
	}
	return s.Shape.Steps/chunk + 1 + t%2
}

// StoredEvery returns after how many rows a CoreState is kept.
func (s *Schema) StoredEvery() int { return s.Shape.chunk() }

// Part reports whether the schema was made by Slice or Of: its Shape does not determine the layout of its columns, and the
// columns of Slice have gaps.
func (s *Schema) Part() bool { return s.part }

func align(n, to int) int { return (n + to - 1) / to * to }

// Columns returns where the columns of this environment lie, in the order of their places. It is for reading.
func (s *Schema) Columns() []Layout { return s.columns }

// Layout returns where a column lies; ok is false for a column that this environment does not have.
func (s *Schema) Layout(c Column) (l Layout, ok bool) {
	if at := s.find(c); at != nil {
		return *at, true
	}
	return Layout{}, false
}

// Tensor returns where the tensor at a place of the environment's description lies, from the first agent of its group in the first
// environment on; ok is false for a tensor without a column, because the host neither reads nor writes it.
func (s *Schema) Tensor(i int) (l Layout, ok bool) {
	c, ok := s.columnOf(i)
	if !ok {
		return Layout{}, false
	}
	l, _ = s.Layout(c)
	first, _ := s.Spec.AgentsOf(s.Spec.Tensors[i].Group)
	l.Offset += first * l.StrideEnv
	return l, true
}

// columnOf returns the column of the tensor at a place of the environment's description. All groups have one column for a role that
// a group has one tensor of. A last observation has the place of its observation, wherever it is described.
func (s *Schema) columnOf(i int) (c Column, ok bool) {
	t := &s.Spec.Tensors[i]
	if t.Role >= hostKinds || !t.Role.Known() {
		return 0, false
	}
	c = Column(t.Role) << kindAt
	among := t.Role
	if t.Role == hostabi.RoleFinalObservation {
		among = hostabi.RoleObservation
		i = slices.IndexFunc(s.Spec.Tensors, func(d hostabi.Tensor) bool { return d.Role == among && d.Group == t.Group && d.Index == t.Pair })
	}
	if t.Role.Rule().Several {
		for _, d := range s.Spec.Tensors[:max(i, 0)] {
			if d.Role == among {
				c++
			}
		}
	}
	return c, s.Has(c)
}

// Has reports whether this environment has a column.
func (s *Schema) Has(c Column) bool { return s.find(c) != nil }

// MaskOf returns where the mask of an action lies, or nil if it has none.
func (s *Schema) MaskOf(action int) *Layout {
	if action >= len(s.actions) || !s.actions[action].masked {
		return nil
	}
	return &s.columns[s.actions[action].mask]
}

func (s *Schema) find(c Column) *Layout {
	first := int(s.first[c>>kindAt%(2*hostKinds)])
	if i := first + c.Index(); i < len(s.columns) && s.columns[i].Column == c {
		return &s.columns[i]
	}
	if c.Kind() != RawAction { // others have no gaps
		return nil
	}
	for i := first; i < len(s.columns) && s.columns[i].Column <= c; i++ {
		if s.columns[i].Column == c {
			return &s.columns[i]
		}
	}
	return nil
}
