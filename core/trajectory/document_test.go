package trajectory

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/internal/testkit"
)

func laidOut(t testing.TB) *Schema {
	t.Helper()
	spec := testkit.Spec(4, 2, true)
	spec, err := hostabi.ParseSpec(spec.Describe()) // as a description has it
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSchema(spec, Shape{Steps: 4, Envs: 5, Policies: "main rival", Memory: Memory{State: 6, Chunk: 2}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// travel sends a document through JSON.
func travel(t testing.TB, doc *native.Schema) *native.Schema {
	t.Helper()
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var got *native.Schema
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestDecodeSchema_ComesBackAsItWas(t *testing.T) {
	columns := &native.Schema{Kind: native.KindTensors, Columns: []native.Column{
		{Name: "w", DType: "f32", Rows: 1, Envs: 1, Elems: 6, Shape: []int{2, 3}, Offset: 40, StrideElem: 4},
	}}
	for _, want := range []arena.Schema{laidOut(t), Names{"loss", "kl"}, columns, nil} {
		got, err := DecodeSchema(travel(t, arena.Document(want)), 1<<20)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%T: got %+v, %v", want, got, err)
		}
	}
}

// The columns of the document are for readers that do not lay out blocks themselves.
func TestDocument_SaysWhereColumnsLie(t *testing.T) {
	s := laidOut(t)
	doc := s.Document()
	if err := native.CheckColumns(doc.Columns, s.Bytes); err != nil {
		t.Error(err)
	}
	l, _ := s.Layout(Reward)
	want := native.Column{Name: "reward", DType: "f32", Rows: 4, Envs: 5, Elems: 1, Shape: []int{}, Offset: l.Offset,
		StrideT: 20, StrideEnv: 4, StrideElem: 4}
	if got := doc.Columns[slices.IndexFunc(doc.Columns, func(c native.Column) bool { return c.Name == "reward" })]; !reflect.DeepEqual(got, want) {
		t.Errorf("reward is %+v, want %+v", got, want)
	}
}

func TestDecodeSchema_RefusesWhatDoesNotFit(t *testing.T) {
	column := native.Column{Name: "w", DType: "f32", Rows: 2, Envs: 2, Elems: 2, Shape: []int{2}, Offset: 0, StrideT: 16, StrideEnv: 8, StrideElem: 4}
	tensor := func(change func(*native.Column)) *native.Schema {
		c := column
		change(&c)
		return &native.Schema{Kind: native.KindTensors, Columns: []native.Column{c}}
	}
	tr := func(change func(*native.Schema)) *native.Schema {
		doc := laidOut(t).Document()
		change(doc)
		return doc
	}
	for name, doc := range map[string]*native.Schema{
		"an unknown kind":         {Kind: "picture"},
		"too many names":          {Kind: native.KindNames, Names: make([]string, 1<<17+1)},
		"too many columns":        {Kind: native.KindTensors, Columns: make([]native.Column, 257)},
		"no such type":            tensor(func(c *native.Column) { c.DType = "f31" }),
		"a negative offset":       tensor(func(c *native.Column) { c.Offset = -1 }),
		"an offset beyond":        tensor(func(c *native.Column) { c.Offset = 1<<20 - 3 }),
		"a negative stride":       tensor(func(c *native.Column) { c.StrideT = -1 }),
		"rows beyond the block":   tensor(func(c *native.Column) { c.Rows = 1 << 17 }),
		"rows that overflow":      tensor(func(c *native.Column) { c.Rows, c.StrideT = math.MaxInt64, math.MaxInt64 }),
		"no rows":                 tensor(func(c *native.Column) { c.Rows = 0 }),
		"another shape":           tensor(func(c *native.Column) { c.Shape = []int{3} }),
		"a shape that overflows":  tensor(func(c *native.Column) { c.Shape = []int{1 << 40, 1 << 40} }),
		"no description":          tr(func(d *native.Schema) { d.Spec = nil }),
		"half a description":      tr(func(d *native.Schema) { d.Spec.Describe = d.Spec.Describe[:9] }),
		"another size":            tr(func(d *native.Schema) { d.Bytes++ }),
		"another region of guest": tr(func(d *native.Schema) { d.GuestBytes-- }),
		"no steps":                tr(func(d *native.Schema) { d.Steps = 0 }),
		"too large for blocks":    tr(func(d *native.Schema) { d.Steps = 1 << 19 }),
	} {
		if got, err := DecodeSchema(doc, 1<<20); !errors.Is(err, native.ErrSchema) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func FuzzDecodeSchema(f *testing.F) {
	for _, s := range []arena.Schema{laidOut(f), Names{"a"}, &native.Schema{Kind: native.KindTensors, Columns: []native.Column{{DType: "u8", Rows: 1, Envs: 1, Elems: 1}}}} {
		b, err := json.Marshal(s.Document())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var doc native.Schema
		if json.Unmarshal(b, &doc) != nil {
			return
		}
		s, err := DecodeSchema(&doc, 1<<16)
		if tr, ok := s.(*Schema); err == nil && ok && tr.Bytes > 1<<16 {
			t.Errorf("a trajectory of %d bytes in a block of %d", tr.Bytes, 1<<16)
		}
	})
}

// Shaped rewards before row 0 exist where wrappers shape rewards, and not where components write them after a block's last step;
// executed actions exist where a policy reads them. Another process sees the same columns.
func TestDocument_HasTheColumnsOfEarlierRows(t *testing.T) {
	memory := Memory{Past: 2, Learned: true, Executed: true}
	for name, c := range map[string]struct {
		shape Shape
		want  []Column
	}{
		"shaped by wrappers":    {Shape{Shaped: true, Memory: memory}, []Column{PastReward, PastShaped, Executed, PastExecuted}},
		"shaped by both":        {Shape{Shaped: true, Granted: "shaped_reward", Memory: memory}, []Column{PastReward, PastShaped, Executed, PastExecuted}},
		"by both, one row":      {Shape{Shaped: true, Granted: "reward shaped_reward"}, nil},
		"by a component, one":   {Shape{Granted: "shaped_reward"}, nil},
		"shaped by a component": {Shape{Granted: "shaped_reward", Memory: memory}, []Column{PastReward, Executed, PastExecuted}},
		"not shaped":            {Shape{Memory: memory}, []Column{PastReward, Executed, PastExecuted}},
		"not asked for":         {Shape{Shaped: true, Memory: Memory{Past: 2}}, []Column{PastReward}},
		"nothing before":        {Shape{Shaped: true, Memory: Memory{State: 3, Learned: true}}, nil},
	} {
		c.shape.Steps, c.shape.Envs = 4, 5
		s, err := NewSchema(testkit.Spec(4, 2, false), c.shape)
		if err != nil {
			t.Fatal(err)
		}
		for _, column := range []Column{PastReward, PastShaped, Executed, PastExecuted} {
			if s.Has(column) != slices.Contains(c.want, column) {
				t.Errorf("%s: column %v is there: %v", name, column, s.Has(column))
			}
		}
		again, err := DecodeSchema(travel(t, s.Document()), s.Bytes)
		if err != nil || !slices.EqualFunc(again.(*Schema).Columns(), s.Columns(), func(a, b Layout) bool { return a.Column == b.Column && a.Offset == b.Offset }) {
			t.Errorf("%s: read back as %+v, %v", name, again, err)
		} else if got := again.(*Schema).Shape; got != s.Shape {
			t.Errorf("%s: read back with shape %+v, want %+v", name, got, s.Shape)
		}
	}
}
