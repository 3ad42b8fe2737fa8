package rollout

import (
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
)

// splitState is the part of a split's state that goes into the snapshot as JSON.
type splitState struct {
	Steps     uint64
	Sequence  uint64
	Turn      uint64 `json:",omitempty"` // the turn that began the block, which begins again
	Calls     uint64
	Restarted int
	Attempts  int
	Tries     int  // attempt that the seeds are for
	Fresh     bool // new episodes begin; there is no instance and nothing is carried
	Resets    bool `json:",omitempty"` // new episodes begin in the instance; nothing is carried
	Phantom   []byte
	Accounts  []account
	Carry     []byte
	SoA       *bool              `json:",omitempty"` // the layout of Carry, Params and Held; nil in older snapshots: the present one
	Memory    trajectory.Memory  `json:",omitzero"`  // that Carry has room for
	Reports   map[string][]tally `json:",omitempty"`
	Policies  string             `json:",omitempty"` // names of several
	Acting    []byte             `json:",omitempty"` // places among them
	Played    []uint64           `json:",omitempty"` // versions of drawn policies
	Params    []byte             `json:",omitempty"` // reset parameters
	Held      *heldState         `json:",omitempty"` // decisions that the next block has
	Numbers   []uint32           `json:",omitempty"` // of the running episodes
	// Of snapshots that were taken before Carry was: it is both.
	CarryObs, CarryMask []byte `json:",omitempty"`
}

// Snapshot saves instance memory, carried rows and running episodes of every split. All splits must be between
// two blocks: bound at most, not stepped. Of a split whose episodes have just begun their seeds are enough.
func (c *Rollout) Snapshot() (component.State, error) {
	state := component.State{Blobs: map[string][]byte{}}
	var splits []splitState
	soa := c.schema.Shape.SoA
	if c.answered() {
		return component.State{}, fmt.Errorf("%w: actions of the next blocks are on their way, of the previous policy", component.ErrNoSnapshot)
	}
	for i, s := range c.splits {
		switch {
		case s.rows.writing && s.t > 0 || s.stepping:
			return component.State{}, fmt.Errorf("%w: split %d is in the middle of a block", component.ErrNoSnapshot, i)
		case s.versions != nil:
			return component.State{}, fmt.Errorf("%w: two versions of the environments run side by side in split %d",
				component.ErrNoSnapshot, i)
		case s.rows.anyGone:
			return component.State{}, fmt.Errorf("%w: environments of split %d wait to be begun again", component.ErrNoSnapshot, i)
		}
		carried := s.carries()
		stepped := carried || s.sequence > 0 // else seeds are enough
		if stepped {
			instance, err := s.batch.env.Snapshot()
			if err != nil {
				return component.State{}, fmt.Errorf("%w: %w", component.ErrNoSnapshot, err)
			}
			state.Blobs[blobName(i)] = instance
		}
		splits = append(splits, splitState{
			Steps: s.steps, Sequence: s.sequence, Turn: nextTurn(s), Calls: s.batch.calls, Restarted: c.restarted.All(), Attempts: c.attempts, Tries: s.seeds.attempt,
			Fresh: !stepped, Resets: stepped && !carried, Phantom: slices.Clone(s.rows.phantom), Accounts: slices.Clone(s.rows.accounts),
			Carry: slices.Clone(s.carry), SoA: &soa, Memory: c.schema.Shape.Memory, Reports: s.rows.reports.save(),
			Policies: c.schema.Shape.Policies, Acting: slices.Clone(s.rows.acting.by), Played: slices.Clone(s.rows.acting.played), Params: slices.Clone(s.params), Held: s.rows.heldDecisions(), Numbers: slices.Clone(s.rows.numbers),
		})
	}
	state.Meta = splits
	if part, ok := c.Lasting(); ok { // for a run that cannot continue these episodes
		state.Blobs[component.LastingBlob] = part.Blobs[component.LastingBlob]
	}
	return state, nil
}

// carries reports whether episodes have begun that the next block from the snapshot continues. A block of whole episodes that
// is under way begins again, with the episodes that have begun in it.
func (s *split) carries() bool {
	if s.rows.whole == nil || s.sequence == 0 || !s.rows.writing || s.awaits != awaitsNothing {
		return s.carried
	}
	s.rows.tr.SaveObserved(s.carry, 0)
	return true
}

// answered reports whether answers to requests wait for the component: a continued run would ask again, and a newer policy would act.
func (c *Rollout) answered() bool {
	return slices.ContainsFunc(c.h.BoundSlot("on_actions").Connections(), func(x *bus.Connection) bool { return x.Stats().Queued > 0 })
}

// nextTurn is the turn of the block that the split begins from a snapshot, counted from 1: splits that have begun a block come first, in
// the order in which they began.
func nextTurn(s *split) uint64 {
	before := func(other *split) bool {
		if other.rows.writing != s.rows.writing {
			return other.rows.writing
		}
		return s.rows.writing && other.turn < s.turn || !s.rows.writing && other.index < s.index
	}
	turn := uint64(1)
	for _, other := range s.all {
		if before(other) {
			turn++
		}
	}
	return turn
}

func blobName(split int) string { return fmt.Sprintf("split%d.instance", split) }

// Restore continues from a snapshot of a component with as many splits of as many environments, or begins new episodes with the lasting
// state of any other.
func (c *Rollout) Restore(state component.State) error {
	if state.OnlyLasting() {
		return c.resumeLasting(state.Blobs[component.LastingBlob])
	}
	var splits []splitState
	if err := state.Decode(&splits); err != nil {
		return err
	}
	if len(splits) != len(c.splits) {
		return fmt.Errorf("rollout state has %d splits, the pipeline %d", len(splits), len(c.splits))
	}
	if from := &splits[0]; !from.Fresh && c.forgets(from) {
		is := c.schema.Shape.Memory
		c.h.Log.Warn("policies begin from scratch in the episodes that continue: what was kept of these is for other ones", "kept_rows", from.Memory.Past, "kept_numbers", from.Memory.State,
			"rows", is.Past, "numbers", is.State)
	}
	for i, s := range c.splits {
		c.attempts = max(splits[i].Attempts, splits[i].Restarted) // older states have no count of attempts
		if err := s.restore(&splits[i], state.Blobs[blobName(i)]); err != nil {
			return fmt.Errorf("split %d: %w", i, err)
		}
		c.restarted.Restore(splits[i].Restarted)
	}
	return nil
}

// forgets reports whether the saved policy states of continuing episodes have another shape than the present policies'. Older states do
// not say their shape.
func (c *shared) forgets(from *splitState) bool {
	was, is := from.Memory, c.schema.Shape.Memory
	return was != (trajectory.Memory{}) && (from.Policies != c.schema.Shape.Policies || was.Past != is.Past || was.Learned != is.Learned || was.Executed != is.Executed || was.State != is.State)
}

func (s *split) restore(from *splitState, instance []byte) error {
	if from.Carry == nil {
		from.Carry = append(from.CarryObs, from.CarryMask...)
	}
	acted := from.Policies == s.rows.c.schema.Shape.Policies // the same policies, which kept the carried state
	if s.rows.c.forgets(from) || len(from.Carry) != len(s.carry) {
		from.Carry = s.remembered(from)
	}
	if len(from.Accounts) != s.rows.n || len(from.Phantom) != s.rows.n ||
		len(from.Carry) != len(s.carry) {
		return fmt.Errorf("state is of other environments")
	}
	if err := s.relay(from); err != nil {
		return err
	}
	if !from.Fresh {
		if err := s.batch.env.Restore(instance); err != nil {
			return err
		}
		s.batch.tape.Changed(true)
	}
	s.steps, s.sequence, s.batch.calls, s.carried = from.Steps, from.Sequence, from.Calls, !from.Fresh && !from.Resets
	s.turn = from.Turn
	copy(s.rows.phantom, from.Phantom)
	copy(s.rows.accounts, from.Accounts)
	copy(s.rows.numbers, from.Numbers)
	copy(s.rows.acting.played, from.Played)
	if copy(s.rows.acting.by, from.Acting); !acted {
		s.rows.acting.beginAll(s.first, s.steps)
	}
	copy(s.carry, from.Carry)
	copy(s.params, from.Params)
	if s.rows.agents != nil {
		for i := range s.rows.accounts {
			s.rows.agents.SetRunning(i, s.rows.accounts[i].Length > 0)
		}
		if !s.rows.c.forgets(from) {
			s.rows.agents.held.load(from.Held)
		}
	}
	for name, running := range from.Reports {
		copy(s.rows.reports.metric(name).running, running)
	}
	if s.seeds.draw(from.Tries); from.Attempts == 0 {
		s.seeds.draw(from.Restarted)
	}
	return nil
}

// relay lays out what was saved of blocks in the other layout as the present blocks are: a run's first environments set that, and
// a resumed run may begin with others, which prefer the other layout.
func (s *split) relay(from *splitState) error {
	if from.SoA == nil || *from.SoA == s.rows.c.schema.Shape.SoA {
		return nil
	}
	was, err := s.rows.c.schema.NewRelaid()
	if err != nil {
		return err
	}
	is, err := s.rows.c.schema.NewDecisions()
	if err != nil {
		return err
	}
	was.LoadObserved(0, from.Carry)
	trajectory.Params{Trajectory: was}.Load(from.Params)
	is.CopyAll(was)
	is.SaveObserved(from.Carry, 0)
	trajectory.Params{Trajectory: is}.Save(from.Params)
	if h := from.Held; h != nil && len(h.Rows) == len(was.Mem) {
		copy(was.Mem, h.Rows)
		is.CopyAll(was)
		h.Rows = is.Mem
	}
	return nil
}

// remembered converts a row that was carried for policies with another memory: the present ones begin from nothing in the
// running episodes. It returns nil for a row of other environments.
func (s *split) remembered(from *splitState) []byte {
	shape := s.rows.c.schema.Shape
	bytes := func(m trajectory.Memory) int {
		m.Chunk, shape.Memory = 0, m
		schema, err := trajectory.NewSchema(s.rows.c.schema.Spec, shape)
		if err != nil {
			return -1
		}
		return schema.ObservedBytes()
	}
	if bytes(from.Memory) != len(from.Carry) {
		return nil
	}
	carry := make([]byte, len(s.carry)) // an age of 0
	copy(carry, from.Carry[:bytes(trajectory.Memory{})])
	return carry
}
