package schema

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/rlhost/rlhost/core/rollout"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk/process/protocol"
)

func spec() rollout.EnvSpec {
	return rollout.EnvSpec{Name: "test@1", ABI: hostabi.EnvABI, Agents: 1, Autoreset: hostabi.NextStep, Caps: hostabi.CapStrides,
		Tensors: []hostabi.TensorDesc{
			{Role: hostabi.RoleAction, DType: hostabi.I32, N: 3},
			{Role: hostabi.RoleObservation, DType: hostabi.F32, Rank: 2, Shape: [6]uint32{4, 5}, Low: -1, High: 1},
			{Role: hostabi.RoleReward, DType: hostabi.F32},
			{Role: hostabi.RoleTerminated, DType: hostabi.U8},
			{Role: hostabi.RoleTruncated, DType: hostabi.U8},
			{Role: hostabi.RoleActionMask, DType: hostabi.U8, Rank: 1, Shape: [6]uint32{3}},
		}}
}

func trajectory(t *testing.T, soa bool) *rollout.Schema {
	t.Helper()
	s, err := rollout.NewSchema(spec(), rollout.Shape{Steps: 7, Envs: 6, SoA: soa})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sent returns the document as it arrives at another process.
func sent(t *testing.T, doc *protocol.Schema) *protocol.Schema {
	t.Helper()
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	got := new(protocol.Schema)
	if err := json.Unmarshal(text, got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestDecode_GivesWhatWasEncoded(t *testing.T) {
	own := &protocol.Schema{Kind: Tensors, Columns: []protocol.Column{
		{Name: "x", DType: "f32", Rows: 1, Envs: 1, Elems: 6, Shape: []int{2, 3}, StrideElem: 4}}}
	for name, want := range map[string]any{
		"rows of elements": trajectory(t, false), "elements of rows": trajectory(t, true), "names": []string{"loss", "kl"}, "own": own,
	} {
		got, err := Decode(sent(t, Encode(want)), 1<<20)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: Decode = %+v, %v, want %+v", name, got, err, want)
		}
	}
	if doc := Encode(7); doc != nil {
		t.Errorf("Encode of something else = %+v, want nothing", doc)
	}
	if got, err := Decode(nil, 1); got != nil || err != nil {
		t.Errorf("Decode of nothing = %v, %v", got, err)
	}
}

func TestEncode_ColumnsSayWhereEveryElementLies(t *testing.T) {
	for _, soa := range []bool{false, true} {
		s := trajectory(t, soa)
		doc := Encode(s)
		if len(doc.Columns) != int(rollout.ColMeta)+1 {
			t.Fatalf("%d columns, want all %d", len(doc.Columns), rollout.ColMeta+1)
		}
		for c, column := range doc.Columns {
			l, _ := s.Layout(rollout.Column(c))
			elems := 1
			for _, n := range column.Shape {
				elems *= n
			}
			if column.Name != rollout.Column(c).String() || column.DType != l.DType.String() || elems != l.Elems ||
				column.Rows != l.Rows || column.Envs != l.Envs || column.Elems != l.Elems || column.Offset != l.Offset ||
				column.StrideT != l.StrideT || column.StrideEnv != l.StrideEnv || column.StrideElem != l.StrideElem {
				t.Errorf("soa %v: column %+v of layout %+v", soa, column, l)
			}
		}
		if obs := doc.Columns[rollout.ColObs]; !reflect.DeepEqual(obs.Shape, []int{4, 5}) {
			t.Errorf("obs has shape %v, want [4 5]", obs.Shape)
		}
		if err := checkColumns(doc.Columns, s.Bytes); err != nil {
			t.Errorf("soa %v: %v", soa, err)
		}
	}
}

func TestDecode_RefusesWhatDoesNotFitTheBlock(t *testing.T) {
	column := func(change func(*protocol.Column)) *protocol.Schema {
		c := protocol.Column{Name: "x", DType: "f32", Rows: 2, Envs: 3, Elems: 4, Shape: []int{4}, StrideT: 48, StrideEnv: 16, StrideElem: 4}
		change(&c)
		return &protocol.Schema{Kind: Tensors, Columns: []protocol.Column{c}}
	}
	if _, err := Decode(column(func(*protocol.Column) {}), 96); err != nil {
		t.Errorf("a column that fills its block: %v", err)
	}
	trajectoryWith := func(change func(*protocol.Schema)) *protocol.Schema {
		doc := Encode(trajectory(t, false))
		change(doc)
		return doc
	}
	for name, doc := range map[string]*protocol.Schema{
		"unknown kind":      {Kind: "video"},
		"too many names":    {Kind: Names, Names: make([]string, 13)},
		"one byte too far":  column(func(c *protocol.Column) { c.Offset = 1 }),
		"negative offset":   column(func(c *protocol.Column) { c.Offset = -4 }),
		"offset at the end": column(func(c *protocol.Column) { c.Offset = math.MaxInt }),
		"negative stride":   column(func(c *protocol.Column) { c.StrideT = -1 }),
		"endless stride":    column(func(c *protocol.Column) { c.StrideEnv = math.MaxInt }),
		"endless rows":      column(func(c *protocol.Column) { c.Rows, c.StrideT = math.MaxInt, math.MaxInt }),
		"product overflows": column(func(c *protocol.Column) { c.Rows, c.StrideT = 1<<31-1, 1<<31-1 }),
		"no rows":           column(func(c *protocol.Column) { c.Rows = 0 }),
		"unknown dtype":     column(func(c *protocol.Column) { c.DType = "f31" }),
		"another shape":     column(func(c *protocol.Column) { c.Shape = []int{5} }),
		"endless shape":     column(func(c *protocol.Column) { c.Shape = []int{math.MaxInt, math.MaxInt} }),
		"too many columns":  {Kind: Tensors, Columns: make([]protocol.Column, maxColumns+1)},
		"no description":    trajectoryWith(func(d *protocol.Schema) { d.Spec = nil }),
		"no environment":    trajectoryWith(func(d *protocol.Schema) { d.Spec = &protocol.EnvSpec{} }),
		"no steps":          trajectoryWith(func(d *protocol.Schema) { d.Steps = 0 }),
		"another size":      trajectoryWith(func(d *protocol.Schema) { d.Bytes++ }),
		"another region":    trajectoryWith(func(d *protocol.Schema) { d.GuestBytes = 0 }),
		"endless steps":     trajectoryWith(func(d *protocol.Schema) { d.Steps, d.Envs = math.MaxInt, math.MaxInt }),
	} {
		if got, err := Decode(doc, 96); !errors.Is(err, ErrSchema) {
			t.Errorf("%s: Decode = %+v, %v, want ErrSchema", name, got, err)
		}
	}
	fits := Encode(trajectory(t, false))
	if _, err := Decode(fits, fits.Bytes-1); !errors.Is(err, ErrSchema) {
		t.Errorf("a trajectory that is larger than its block = %v, want ErrSchema", err)
	}
}

func FuzzDecode(f *testing.F) {
	doc := &protocol.Schema{Kind: Tensors, Columns: []protocol.Column{{DType: "f32", Rows: 1, Envs: 1, Elems: 1, StrideElem: 4}}}
	text, err := json.Marshal(doc)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text, 64)
	f.Add([]byte(`{"kind":"names","names":["a","b"]}`), 16)
	f.Add([]byte(`{"kind":"trajectory","spec":{"describe":"AAAA"},"steps":3,"envs":2}`), 4096)
	f.Fuzz(func(t *testing.T, text []byte, blockBytes int) {
		doc := new(protocol.Schema)
		if json.Unmarshal(text, doc) != nil {
			return
		}
		got, err := Decode(doc, blockBytes)
		tensors, ok := got.(*protocol.Schema)
		if err != nil || !ok {
			return
		}
		for _, c := range tensors.Columns {
			last := c.Offset + (c.Rows-1)*c.StrideT + (c.Envs-1)*c.StrideEnv + (c.Elems-1)*c.StrideElem
			if last < 0 || last >= blockBytes {
				t.Errorf("column %+v ends at %d of %d bytes", c, last, blockBytes)
			}
		}
	})
}
