package trajectory

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
)

func TestSchema_ColumnsAreAlignedDenseAndApart(t *testing.T) {
	for _, soa := range []bool{false, true} {
		s, err := NewSchema(testkit.Spec(3, 5, true), Shape{Steps: 7, Envs: 5, SoA: soa})
		if err != nil {
			t.Fatal(err)
		}
		end := 0
		for _, l := range s.Columns() {
			c := l.Column
			if again, ok := s.Layout(c); !ok || !reflect.DeepEqual(again, l) {
				t.Errorf("column %v lies at %+v, in the list at %+v", c, again, l)
			}
			if l.Offset%columnAlign != 0 || l.Offset < end {
				t.Errorf("column %v at %d, want aligned to %d and behind %d", c, l.Offset, columnAlign, end)
			}
			end = l.Offset + l.Bytes
			last := (l.Rows-1)*l.StrideT + (l.Envs-1)*l.StrideEnv + (l.Elems-1)*l.StrideElem + l.DType.Bytes()
			if last != l.Bytes {
				t.Errorf("column %v: last element ends at %d of %d bytes", c, last, l.Bytes)
			}
		}
		final, _ := s.Layout(FinalObs)
		if s.GuestBytes%pageBytes != 0 || final.Offset+final.Bytes > s.GuestBytes {
			t.Errorf("the guest's region ends at %d, its last column at %d", s.GuestBytes, final.Offset+final.Bytes)
		}
		if host, _ := s.Layout(LogProb); host.Offset < s.GuestBytes {
			t.Errorf("log_prob at %d lies in the guest's region of %d bytes", host.Offset, s.GuestBytes)
		}
	}
}

func TestSchema_RefusesShapes(t *testing.T) {
	spec := testkit.Spec(3, 5, false)
	for _, shape := range []Shape{{}, {Steps: 1}, {Steps: -1, Envs: 4}, {Steps: 1 << 20, Envs: 1 << 20}, {Steps: 1, Envs: 1, Memory: Memory{Past: MaxPast + 1}}} {
		if _, err := NewSchema(spec, shape); !errors.Is(err, ErrShape) {
			t.Errorf("NewSchema(%v) = %v, want ErrShape", shape, err)
		}
	}
	spec.Caps = 0
	if _, err := NewSchema(spec, Shape{Steps: 1, Envs: 1, SoA: true}); !errors.Is(err, ErrShape) {
		t.Errorf("NewSchema of [elem][env] for a guest without strides = %v, want ErrShape", err)
	}
}

func TestTrajectory_ViewsAliasTheBlock(t *testing.T) {
	for _, soa := range []bool{false, true} {
		tr := testTrajectory(t, testkit.Spec(3, 5, false), Shape{Steps: 2, Envs: 4, SoA: soa})
		row := tr.Row(Obs, 1)
		row.Float32()[(2*row.StrideRow+1*row.StrideElem)/4] = 42 // env 2, element 1
		at := 1*12 + 2*3 + 1
		if soa {
			at = 1*12 + 1*4 + 2
		}
		if got := tr.Float32(Obs)[at]; got != 42 {
			t.Errorf("soa %v: obs[1][2][1] = %v, want 42", soa, got)
		}
		if got := row.Slice(2, 3); got.Float32()[row.StrideElem/4] != 42 || got.Rows != 1 {
			t.Errorf("soa %v: row 2 of the slice = %v", soa, got.Float32()[row.StrideElem/4])
		}
		tr.Meta().ValidRows = 8
		if got := tr.Meta().ValidRows; got != 8 {
			t.Errorf("Meta().ValidRows = %d, want 8", got)
		}
	}
	if got := unsafe.Sizeof(Meta{}); got != metaBytes {
		t.Errorf("Meta has %d bytes, want %d", got, metaBytes)
	}
}

func TestActRequest_RoundTrip(t *testing.T) {
	for _, want := range []ActRequest{
		{Block: hostabi.MakeHandle(1, 2, 3), T: 64, Split: 1, Step: 1 << 40, FirstEnv: 1<<32 - 1, ValueOnly: true},
		{Block: hostabi.MakeHandle(9, 0, 1), T: 1, Bootstrap: true, Policy: 31},
	} {
		m := want.Message()
		if got := ActRequestOf(&m); got != want {
			t.Errorf("ActRequestOf = %+v, want %+v", got, want)
		}
	}
}

// Two slices see all elements of their environments and of all their agents where the whole block has them, and no others.
func TestSlice_HasTheElementsOfItsEnvironments(t *testing.T) {
	for name, spec := range map[string]hostabi.EnvSpec{"one agent": testkit.Spec(3, 5, true), "three agents in two groups": grouped()} {
		for _, soa := range []bool{false, true} {
			whole := testTrajectory(t, spec, Shape{Steps: 4, Envs: 5, SoA: soa})
			for _, part := range [][2]int{{0, 2}, {2, 3}, {0, 5}, {4, 1}} {
				first, n := part[0], part[1]
				schema, err := whole.Schema.Slice(first, n)
				if err != nil {
					t.Fatal(err)
				}
				if schema.Shape.Envs != n || schema.Rows() != n*spec.Agents() || schema.Bytes != whole.Schema.Bytes || schema.GuestBytes != whole.Schema.GuestBytes {
					t.Errorf("%s: slice %v has shape %+v, %d rows in %d bytes", name, part, schema.Shape, schema.Rows(), schema.Bytes)
				}
				tr := Trajectory{Schema: schema, Mem: whole.Mem}
				for _, l := range schema.Columns() {
					c := l.Column
					if l.Flags&PerEnv != 0 && l.Envs != n*spec.Agents() {
						t.Errorf("%s: slice %v has %d rows of %v", name, part, l.Envs, c)
					}
					for row := range l.Rows {
						same(t, c, whole.Row(c, row), tr.Row(c, row), first*spec.Agents())
					}
				}
			}
		}
	}
	s, err := NewSchema(testkit.Spec(3, 5, true), Shape{Steps: 4, Envs: 5})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range [][2]int{{-1, 2}, {0, 0}, {0, 6}, {5, 1}, {6, -1}, {1 << 62, 1 << 62}, {3, -1 << 62}} {
		if _, err := s.Slice(part[0], part[1]); !errors.Is(err, ErrShape) {
			t.Errorf("Slice%v = %v, want ErrShape", part, err)
		}
	}
}

// same compares where the elements of two views of a row lie.
func same(t *testing.T, c Column, whole, part Matrix, first int) {
	t.Helper()
	if whole.Rows == 1 && part.Rows == 1 {
		first = 0
	}
	for env := range part.Rows {
		for i := range part.Elems {
			got := &part.Data[env*part.StrideRow+i*part.StrideElem]
			want := &whole.Data[(first+env)*whole.StrideRow+i*whole.StrideElem]
			if got != want {
				t.Fatalf("%v: element %d of environment %d of the slice lies elsewhere", c, i, env)
			}
		}
	}
}

// A second observation is another column of the same kind, wherever observations are carried, kept, checked or copied.
func TestColumn_SecondObservationNeedsNoNameOfItsOwn(t *testing.T) {
	spec := testkit.Spec(3, 2, true)
	image := hostabi.Tensor{Role: hostabi.RoleObservation, DType: hostabi.U8, Rank: 2, Shape: [hostabi.MaxRank]uint32{2, 4}}
	speed := hostabi.Tensor{Role: hostabi.RoleObservation, DType: hostabi.F32, Rank: 1, Shape: [hostabi.MaxRank]uint32{2}}
	spec.Tensors = append([]hostabi.Tensor{image}, append(spec.Tensors, speed)...)
	tr := testTrajectory(t, spec, Shape{Steps: 4, Envs: 5})
	last := Obs.At(2)
	if l, ok := tr.Schema.Tensor(len(spec.Tensors) - 1); !ok || l.Column != last {
		t.Errorf("the third observation lies as a tensor in %v, %v", l.Column, ok)
	}
	if c, ok := ParseColumn("obs/2"); !ok || c != last {
		t.Errorf("the third observation is %v, %v", c, ok)
	}
	if l, ok := tr.Schema.Layout(FinalObs); !ok || l.DType != hostabi.U8 || !reflect.DeepEqual(l.Shape, []int{2, 4}) || l.Elems != 8 {
		t.Errorf("the last observations of the image lie at %+v, %v", l, ok)
	}
	if tr.Schema.Has(Obs.At(3)) || tr.Schema.Has(Reward.At(1)) || tr.Schema.Has(Column(1<<32-1)) {
		t.Error("there are columns that the environment has no tensors for")
	}
	for i := range tr.Bytes(Mask) {
		tr.Bytes(Mask)[i] = 1
	}
	speeds := func(row int) []float32 { return tr.Row(last, row).Float32() }
	copy(speeds(4), []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	tr.Row(Obs, 4).Data[0] = 99
	carry := make([]byte, tr.Schema.ObservedBytes())
	tr.SaveObserved(carry, 4)
	tr.LoadObserved(0, carry)
	tr.KeepFinal(1, 0)
	if got := speeds(0)[3]; got != 4 || tr.Row(Obs, 0).Data[0] != 99 || tr.Row(FinalObs.At(2), 0).Float32()[3] != 4 {
		t.Errorf("carried over are %v and %d", got, tr.Row(Obs, 0).Data[0])
	}
	speeds(2)[7] = float32(math.NaN())
	if _, env, err := tr.CheckStep(1, hostabi.SameStep); env != 3 || err == nil || !strings.Contains(err.Error(), "observation/2 element 1 is NaN") {
		t.Errorf("CheckStep = env %d, %v", env, err)
	}
	tr.ClearOutcomeOf(3, 1)
	if _, env, err := tr.CheckStep(1, hostabi.SameStep); err != nil {
		t.Errorf("CheckStep of a row in which nothing happened = env %d, %v", env, err)
	}
}

// A last observation lies where its observation says, in whatever order and group they are described.
func TestSchema_LastObservationsBelongToTheirPairs(t *testing.T) {
	spec := testkit.Spec(3, 2, false)
	speed := hostabi.Tensor{Role: hostabi.RoleObservation, Index: 1, DType: hostabi.U8, Path: "speed"}
	last := speed
	last.Role, last.Index, last.Pair = hostabi.RoleFinalObservation, 0, 1
	spec.Tensors[5].Index = 1
	spec.Tensors = append(spec.Tensors[:5:5], last, spec.Tensors[5], speed)
	parsed, err := hostabi.ParseSpec(spec.Describe())
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSchema(parsed, Shape{Steps: 4, Envs: 5})
	if err != nil {
		t.Fatal(err)
	}
	for tensor, want := range map[int]Column{1: Obs, 5: FinalObs.At(1), 6: FinalObs, 7: Obs.At(1)} {
		if l, ok := s.Tensor(tensor); !ok || l.Column != want || l.DType != parsed.Tensors[tensor].DType {
			t.Errorf("tensor %d lies in %v of %v, want %v", tensor, l.Column, l.DType, want)
		}
	}
}

func TestParseColumn_ParsesString(t *testing.T) {
	for _, name := range ColumnNames() {
		if c, ok := ParseColumn(name); !ok || c.String() != name || c.Index() != 0 {
			t.Errorf("ParseColumn(%q) = %v, %v", name, c, ok)
		}
	}
	for _, name := range []string{"", "/", "obs/", "obs/0", "obs/01", "obs/+1", "obs/65536", "obs/-1", "column?", "Obs"} {
		if c, ok := ParseColumn(name); ok {
			t.Errorf("ParseColumn(%q) = %v", name, c)
		}
	}
}

// Pictures are dense within a row even where other tensors lie [elem][env], and a tensor that the host has no use for lies nowhere.
func TestSchema_PicturesAreDense(t *testing.T) {
	spec := testkit.Spec(3, 2, false)
	image := hostabi.Tensor{Role: hostabi.RoleObservation, DType: hostabi.U8, Rank: 3, Shape: [hostabi.MaxRank]uint32{4, 5, 3}}
	planes := hostabi.Tensor{Role: hostabi.RoleObservation, DType: hostabi.F32, Rank: 3, Shape: image.Shape, Flags: hostabi.TensorImageCHW}
	later, cost := hostabi.Tensor{Role: 77, DType: hostabi.F32}, hostabi.Tensor{Role: 13, DType: hostabi.F32}
	spec.Tensors = append([]hostabi.Tensor{image, planes, later, cost}, spec.Tensors...)
	s, err := NewSchema(spec, Shape{Steps: 4, Envs: 6, SoA: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ env, elem int }{{60, 1}, {240, 4}} {
		if l, ok := s.Tensor(i); !ok || l.StrideEnv != want.env || l.StrideElem != want.elem {
			t.Errorf("picture %d lies at %+v, %v, want strides %+v", i, l, ok, want)
		}
	}
	if l, ok := s.Layout(Obs.At(2)); !ok || l.StrideElem != 4*6 {
		t.Errorf("the other observation lies at %+v, %v, want [elem][env]", l, ok)
	}
	for i := range 2 {
		if l, ok := s.Tensor(2 + i); ok {
			t.Errorf("%v lies at %+v", spec.Tensors[2+i].Role, l)
		}
	}
}

func TestSchema_OfShowsTheRowsOfOnePolicy(t *testing.T) {
	s, err := NewSchema(testkit.Spec(3, 5, true), Shape{Steps: 7, Envs: 5, Policies: "main past rival"})
	if err != nil {
		t.Fatal(err)
	}
	mem := make([]byte, s.Bytes)
	for place, name := range []string{"main", "past", "rival"} {
		own, err := s.Of(name)
		if err != nil {
			t.Fatal(err)
		}
		all, mine := Trajectory{s, mem}, Trajectory{own, mem}
		mine.Bytes(Valid)[3] = 1
		mine.Uint64(PolicyVersion)[7] = uint64(100 + place)
		if all.Bytes(Valid)[3] != 0 || all.Bytes(Valid.At(1 + place))[3] != 1 || all.Uint64(PolicyVersion.At(1 + place))[7] != uint64(100+place) {
			t.Errorf("%s does not write valid/%d and policy_version/%d", name, 1+place, 1+place)
		}
		for _, l := range s.Columns() {
			if same, ok := own.Layout(l.Column); !ok || !reflect.DeepEqual(same, l) != (l.Column == Valid || l.Column == PolicyVersion) {
				t.Errorf("%s: column %v lies at %+v, of all at %+v", name, l.Column, same, l)
			}
		}
		if got, ok := s.PolicyPlace(name); !ok || got != place {
			t.Errorf("PolicyPlace(%s) = %d, %v", name, got, ok)
		}
	}
	if _, err := s.Of("nobody"); !errors.Is(err, ErrShape) || !strings.Contains(err.Error(), "main past rival") {
		t.Errorf("Of a policy that acts nowhere: %v", err)
	}
	one, err := NewSchema(testkit.Spec(3, 5, true), Shape{Steps: 7, Envs: 5})
	if err != nil {
		t.Fatal(err)
	}
	if own, err := one.Of("whoever"); own != one || err != nil {
		t.Errorf("Of blocks of one policy: %p, %v, want the same", own, err)
	}
	if one.Has(Policy) || one.Has(Valid.At(1)) {
		t.Error("blocks of one policy have columns of several")
	}
	if _, err := NewSchema(testkit.Spec(3, 5, true), Shape{Steps: 7, Envs: 5, Policies: strings.Repeat("p ", MaxPolicies+1)}); !errors.Is(err, ErrShape) {
		t.Errorf("too many policies: %v", err)
	}
}

// Columns that wires let other components write lie on separate pages; without such columns the layout is unchanged.
func TestNewSchema_GrantedColumnsHavePagesOfTheirOwn(t *testing.T) {
	plain, err := NewSchema(testkit.Spec(3, 5, true), Shape{Steps: 4, Envs: 3})
	if err != nil {
		t.Fatal(err)
	}
	if nobodys, err := NewSchema(testkit.Spec(3, 5, true), Shape{Steps: 4, Envs: 3, Granted: "cost"}); err != nil || nobodys.Bytes != plain.Bytes {
		t.Errorf("with a name of no column: %d bytes, %v, want %d", nobodys.Bytes, err, plain.Bytes)
	}
	s, err := NewSchema(testkit.Spec(3, 5, true), Shape{Steps: 4, Envs: 3, Granted: "reward shaped_reward"})
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	apart := 0
	for _, l := range s.Columns() {
		if !l.Apart {
			continue
		}
		apart++
		if l.Offset%page != 0 {
			t.Errorf("%v begins at %d, in the middle of a page", l.Column, l.Offset)
		}
		for _, o := range s.Columns() {
			if o.Column != l.Column && o.Offset+o.Bytes > l.Offset && o.Offset < (l.Offset+l.Bytes+page-1)/page*page {
				t.Errorf("%v lies on pages of %v", o.Column, l.Column)
			}
		}
	}
	if apart != 2 {
		t.Errorf("%d columns have pages of their own, want reward and shaped_reward", apart)
	}
	if again, err := DecodeSchema(s.Document(), s.Bytes); err != nil || again.(*Schema).Bytes != s.Bytes {
		t.Errorf("read back: %v", err)
	}
	for _, l := range plain.Columns() {
		if l.Apart {
			t.Errorf("%v has pages of its own without a grant", l.Column)
		}
	}
}
