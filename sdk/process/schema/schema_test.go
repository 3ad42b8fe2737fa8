package schema

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/sdk/process/protocol"
)

func laidOut(t testing.TB) *trajectory.Schema {
	t.Helper()
	s, err := trajectory.NewSchema(plugintest.New(plugintest.Script{}).Spec(), trajectory.Shape{Steps: 3, Envs: 5})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// travel sends a document through JSON.
func travel(t testing.TB, doc *protocol.Schema) *protocol.Schema {
	t.Helper()
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var got *protocol.Schema
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestSchema_ComesBackAsItWas(t *testing.T) {
	columns := &protocol.Schema{Kind: Tensors, Columns: []protocol.Column{
		{Name: "w", DType: "f32", Rows: 1, Envs: 1, Elems: 6, Shape: []int{2, 3}, Offset: 40, StrideElem: 4},
	}}
	for _, want := range []any{laidOut(t), []string{"loss", "kl"}, columns, nil} {
		got, err := Decode(travel(t, Encode(want)), 1<<20)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%T: got %+v, %v", want, got, err)
		}
	}
	if doc := Encode(7); doc != nil {
		t.Errorf("a schema of nobody's is %+v", doc)
	}
}

// The columns of the document are for those who do not lay out blocks themselves.
func TestEncode_SaysWhereColumnsLie(t *testing.T) {
	s := laidOut(t)
	doc := Encode(s)
	for _, c := range doc.Columns {
		if !fits(&c, s.Bytes) {
			t.Errorf("column %q does not lie in the block: %+v", c.Name, c)
		}
	}
	l, _ := s.Layout(trajectory.ColReward)
	want := protocol.Column{Name: "reward", DType: "f32", Rows: 3, Envs: 5, Elems: 1, Shape: []int{}, Offset: l.Offset,
		StrideT: 20, StrideEnv: 4, StrideElem: 4}
	if got := doc.Columns[trajectory.ColReward]; !reflect.DeepEqual(got, want) {
		t.Errorf("reward is %+v, want %+v", got, want)
	}
}

func TestDecode_RefusesWhatDoesNotFit(t *testing.T) {
	column := protocol.Column{Name: "w", DType: "f32", Rows: 2, Envs: 2, Elems: 2, Shape: []int{2}, Offset: 0, StrideT: 16, StrideEnv: 8, StrideElem: 4}
	tensor := func(change func(*protocol.Column)) *protocol.Schema {
		c := column
		change(&c)
		return &protocol.Schema{Kind: Tensors, Columns: []protocol.Column{c}}
	}
	tr := func(change func(*protocol.Schema)) *protocol.Schema {
		doc := Encode(laidOut(t))
		change(doc)
		return doc
	}
	for name, doc := range map[string]*protocol.Schema{
		"an unknown kind":         {Kind: "picture"},
		"too many names":          {Kind: Names, Names: make([]string, 1<<17+1)},
		"too many columns":        {Kind: Tensors, Columns: make([]protocol.Column, 257)},
		"no such type":            tensor(func(c *protocol.Column) { c.DType = "f31" }),
		"a negative offset":       tensor(func(c *protocol.Column) { c.Offset = -1 }),
		"an offset beyond":        tensor(func(c *protocol.Column) { c.Offset = 1<<20 - 3 }),
		"a negative stride":       tensor(func(c *protocol.Column) { c.StrideT = -1 }),
		"rows beyond the block":   tensor(func(c *protocol.Column) { c.Rows = 1 << 17 }),
		"rows that overflow":      tensor(func(c *protocol.Column) { c.Rows, c.StrideT = math.MaxInt64, math.MaxInt64 }),
		"no rows":                 tensor(func(c *protocol.Column) { c.Rows = 0 }),
		"another shape":           tensor(func(c *protocol.Column) { c.Shape = []int{3} }),
		"a shape that overflows":  tensor(func(c *protocol.Column) { c.Shape = []int{1 << 40, 1 << 40} }),
		"no description":          tr(func(d *protocol.Schema) { d.Spec = nil }),
		"half a description":      tr(func(d *protocol.Schema) { d.Spec.Describe = d.Spec.Describe[:9] }),
		"another size":            tr(func(d *protocol.Schema) { d.Bytes++ }),
		"another region of guest": tr(func(d *protocol.Schema) { d.GuestBytes-- }),
		"no steps":                tr(func(d *protocol.Schema) { d.Steps = 0 }),
		"too large for blocks":    tr(func(d *protocol.Schema) { d.Steps = 1 << 19 }),
	} {
		if got, err := Decode(doc, 1<<20); !errors.Is(err, ErrSchema) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []any{laidOut(f), []string{"a"}, &protocol.Schema{Kind: Tensors, Columns: []protocol.Column{{DType: "u8", Rows: 1, Envs: 1, Elems: 1}}}} {
		b, err := json.Marshal(Encode(s))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var doc protocol.Schema
		if json.Unmarshal(b, &doc) != nil {
			return
		}
		s, err := Decode(&doc, 1<<16)
		if tr, ok := s.(*trajectory.Schema); err == nil && ok && tr.Bytes > 1<<16 {
			t.Errorf("a trajectory of %d bytes in a block of %d", tr.Bytes, 1<<16)
		}
	})
}
