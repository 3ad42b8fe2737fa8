package trajectory

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
)

// grouped describes two agents that observe 3 numbers and choose one of 2 moves, and one that observes 5 and chooses one of 4. The two
// always act and share their flags; the third agent has an activity, a mask and flags.
func grouped() hostabi.EnvSpec {
	spec := testkit.Spec(3, 2, false)
	spec.Autoreset, spec.Groups = hostabi.SameStep, []hostabi.Group{{Name: "pair", Agents: 2}, {Name: "lone", Agents: 1}}
	lone := testkit.Spec(5, 4, true)
	lone.Tensors = append(lone.Tensors, hostabi.Tensor{Role: hostabi.RoleActive, DType: hostabi.U8},
		hostabi.Tensor{Role: hostabi.RoleInfo, DType: hostabi.F32, Flags: hostabi.TensorMax, Path: "speed"})
	for i := range spec.Tensors {
		if d := &spec.Tensors[i]; d.Role != hostabi.RoleTerminated && d.Role != hostabi.RoleTruncated {
			d.Flags |= hostabi.TensorPerAgent
		}
	}
	for _, d := range lone.Tensors {
		d.Flags |= hostabi.TensorPerAgent
		d.Group = 1
		spec.Tensors = append(spec.Tensors, d)
	}
	return spec
}

// Row r of a step is the same agent in all columns, and a tensor begins with the first agent of its group.
func TestGroups_RowsAreTheSameAgentInAllColumns(t *testing.T) {
	tr := testTrajectory(t, grouped(), Shape{Steps: 4, Envs: 2})
	s := tr.Schema
	if s.Agents != 3 || s.Rows() != 6 {
		t.Fatalf("%d agents, %d rows, want 3 and 6", s.Agents, s.Rows())
	}
	for _, l := range s.Columns() {
		if l.Flags&PerEnv != 0 && l.Envs != 6 {
			t.Errorf("%v has %d rows in a step, want 6", l.Column, l.Envs)
		}
	}
	for row, want := range []int{0, 0, 1, 0, 0, 1} {
		if got := s.GroupOf(row); got != want {
			t.Errorf("row %d is of group %d, want %d", row, got, want)
		}
		if s.Holds(Obs, row) != (want == 0) || s.Holds(Obs.At(1), row) != (want == 1) || !s.Holds(Reward, row) {
			t.Errorf("row %d: Holds says %v, %v, %v of obs, obs/1 and reward", row, s.Holds(Obs, row), s.Holds(Obs.At(1), row), s.Holds(Reward, row))
		}
	}
	for i, d := range s.Spec.Tensors {
		l, ok := s.Tensor(i)
		if !ok {
			t.Fatalf("tensor %d has no column", i)
		}
		whole, _ := s.Layout(l.Column)
		first, _ := s.Spec.AgentsOf(d.Group)
		if l.Offset != whole.Offset+first*whole.StrideEnv || d.Role == hostabi.RoleReward && l.Column != Reward {
			t.Errorf("%v of group %d lies at %d of %v, which begins at %d", d.Role, d.Group, l.Offset, l.Column, whole.Offset)
		}
	}
	for row, want := range []bool{true, false, true, true, false, true} {
		if got := s.Written(Terminated, row); got != want {
			t.Errorf("Written(terminated, %d) = %v", row, got)
		}
		if got := s.Written(Active, row); got != (s.GroupOf(row) == 1) {
			t.Errorf("Written(active, %d) = %v", row, got)
		}
	}
}

// Nothing checks the group of a tensor whose role is of a later version, so nothing may look it up.
func TestGroups_TensorOfAnUnknownRole(t *testing.T) {
	spec := grouped()
	spec.Tensors = append(spec.Tensors, hostabi.Tensor{Role: 4000, DType: hostabi.F32, Flags: hostabi.TensorOptional, Group: 9})
	checked, err := hostabi.ParseSpec(spec.Describe())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewSchema(checked, Shape{Steps: 4, Envs: 2}); err != nil {
		t.Error(err)
	}
}

// A group's schema equals the schema of an environment with no other group, except for the rows; a policy's equals the schema of
// the group that it plays.
func TestGroups_OfGroupHasItsColumnsAlone(t *testing.T) {
	shape := Shape{Steps: 4, Envs: 2, Policies: "main other"}
	shape.Groups[0], shape.Groups[1] = 1, 0
	tr := testTrajectory(t, grouped(), shape)
	for name, group := range map[string]int{"main": 1, "other": 0} {
		own, err := tr.Schema.Of(name)
		if err != nil {
			t.Fatal(err)
		}
		alone := tr.Schema.Spec.OfGroup(group)
		if len(alone.Groups) != 1 || own.Spec.ObsElems() != alone.ObsElems() || own.Rows() != 6 {
			t.Errorf("%s observes %d numbers in %d rows, want %d in 6", name, own.Spec.ObsElems(), own.Rows(), alone.ObsElems())
		}
		obs, _ := own.Layout(Obs)
		want, _ := tr.Schema.Layout(Obs.At(group))
		if obs.Offset != want.Offset || obs.Elems != alone.ObsElems() || own.Has(Obs.At(1)) || own.Has(Action.At(1)) {
			t.Errorf("%s: obs lies at %d with %d elements, want %d with %d", name, obs.Offset, obs.Elems, want.Offset, alone.ObsElems())
		}
		if masked := own.MaskOf(0) != nil; masked != (group == 1) || own.Has(Mask) != masked || own.Has(Info) != masked {
			t.Errorf("%s has a mask: %v, an info: %v", name, masked, own.Has(Info))
		}
		place, _ := tr.Schema.PolicyPlace(name)
		valid, _ := own.Layout(Valid)
		if all, _ := tr.Schema.Layout(Valid.At(1 + place)); valid.Offset != all.Offset {
			t.Errorf("%s has the valid rows of another", name)
		}
	}
	shape.Groups[1] = 2
	if _, err := NewSchema(grouped(), shape); !errors.Is(err, ErrShape) {
		t.Errorf("a policy of a group that there is not: %v", err)
	}
}

// Unused rows are not checked: in a group's tensors, the rows of other agents hold anything.
func TestGroups_OnlyTheGroupsOwnRowsAreChecked(t *testing.T) {
	nan := float32(math.NaN())
	fresh := func() Trajectory {
		tr := testTrajectory(t, grouped(), Shape{Steps: 4, Envs: 2})
		for row := range tr.Schema.Rows() {
			for _, m := range []Matrix{tr.Row(Obs, 1), tr.Row(Obs.At(1), 1), tr.Row(FinalObs, 0), tr.Row(FinalObs.At(1), 0), tr.Row(Info, 0), tr.Row(Info, 1)} {
				for i := range m.Elems {
					m.Float32()[(row*m.StrideRow+i*m.StrideElem)/4] = 1
				}
			}
			mask := tr.Row(Mask, 1)
			for i := range mask.Elems {
				mask.Data[row*mask.StrideRow+i*mask.StrideElem] = 1
			}
			for k := range 2 {
				m, whose := tr.Row(Obs.At(k), 1), Obs.At(k)
				if !tr.Schema.Holds(whose, row) {
					m.Float32()[row*m.StrideRow/4] = nan
				}
				if m = tr.Row(FinalObs.At(k), 0); !tr.Schema.Holds(FinalObs.At(k), row) {
					m.Float32()[row*m.StrideRow/4] = nan
				}
			}
			if !tr.Schema.Holds(Mask, row) {
				mask.Data[row*mask.StrideRow] = 77
				tr.Row(Info, 0).Float32()[row] = nan
			}
		}
		return tr
	}
	tr := fresh()
	for _, first := range []int{0, 3} {
		tr.Row(Terminated, 0).Data[first], tr.Row(Terminated, 0).Data[first+1] = 1, 77 // which the host writes
	}
	tr.Row(Active, 1).Data[0], tr.Row(Active, 1).Data[2] = 0, 1
	ended, env, err := tr.CheckStep(0, hostabi.SameStep)
	if err != nil || ended != AnyTerminated {
		t.Fatalf("CheckStep = %v, environment %d, %v", ended, env, err)
	}
	if got := tr.Row(Terminated, 0).Data; !slices.Equal(got, []byte{1, 1, 0, 1, 1, 0}) {
		t.Errorf("terminated is %v: the flag of a group is not that of its agents alone", got)
	}
	if got := tr.Acts(1); !slices.Equal(got, []byte{1, 1, 1, 1, 1, 0}) {
		t.Errorf("active is %v: groups without an activity always act", got)
	}
	for name, spoil := range map[string]func(Trajectory){
		"obs":         func(tr Trajectory) { tr.Row(Obs, 1).Float32()[3*4] = nan },
		"obs/1":       func(tr Trajectory) { tr.Row(Obs.At(1), 1).Float32()[5*5+2] = nan },
		"final_obs/1": func(tr Trajectory) { tr.Row(FinalObs.At(1), 0).Float32()[5*5] = nan; tr.Row(Truncated, 0).Data[5] = 1 },
		"mask":        func(tr Trajectory) { clear(tr.Row(Mask, 1).Data[5*4:]) },
		"info":        func(tr Trajectory) { tr.Row(Info, 0).Float32()[5] = nan },
	} {
		tr := fresh()
		spoil(tr)
		if _, env, err := tr.CheckStep(0, hostabi.SameStep); !errors.Is(err, ErrOutput) || env != 1 {
			t.Errorf("%s: environment %d, %v, want environment 1 and ErrOutput", name, env, err)
		}
	}
}

// Random actions are within the space of the agent's own group, and others' rows stay as they are.
func TestGroups_DrawActions(t *testing.T) {
	tr := testTrajectory(t, grouped(), Shape{Steps: 4, Envs: 2})
	for row := range 6 {
		mask := tr.Row(Mask, 0)
		mask.Data[row*mask.StrideRow+3] = 1 // the last of four moves alone
		tr.Row(Action, 0).Int32()[row], tr.Row(Action.At(1), 0).Int32()[row] = -9, -9
	}
	tr.DrawActions(0, func(row int) uint64 { return uint64(row) << 61 })
	for row := range 6 {
		pair, lone := tr.Row(Action, 0).Int32()[row], tr.Row(Action.At(1), 0).Int32()[row]
		if tr.Schema.GroupOf(row) == 1 {
			if pair != -9 || lone != 3 {
				t.Errorf("row %d: %d and %d, want none of the pair's, and 3", row, pair, lone)
			}
		} else if pair < 0 || pair > 1 || lone != -9 {
			t.Errorf("row %d: %d and %d, want 0 or 1, and none of the other's", row, pair, lone)
		}
	}
}

// Another process lays the blocks out in the same way.
func TestGroups_ADocumentHasThem(t *testing.T) {
	shape := Shape{Steps: 4, Envs: 2, Policies: "a b c"}
	shape.Groups[1] = 1
	s, err := NewSchema(grouped(), shape)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := DecodeSchema(s.Document(), s.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if got := decoded.(*Schema); got.Shape != s.Shape || len(got.Columns()) != len(s.Columns()) {
		t.Errorf("decoded as %+v, want %+v", got.Shape, s.Shape)
	}
	doc := s.Document()
	doc.Groups = []int{0, 99}
	if _, err := DecodeSchema(doc, s.Bytes); err == nil {
		t.Error("a policy of group 99 is accepted")
	}
}
