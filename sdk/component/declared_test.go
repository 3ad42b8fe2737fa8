package component_test

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk/component"
)

// desk is a host that notes a component's calls.
type desk struct {
	component.Host // panics for all else
	slots          map[string]func(*component.Message)
	sent           []component.Message
	failed         error
}

func (d *desk) Signal(string) component.Signal                  { return d }
func (d *desk) Slot(name string, fn func(m *component.Message)) { d.slots[name] = fn }
func (d *desk) Fail(err error)                                  { d.failed = err }

func (d *desk) Emit(m component.Message) (component.Outcome, error) {
	d.sent = append(d.sent, m)
	return component.Dropped, nil
}

// page is a block, and its lease.
type page struct {
	columns  map[string]component.Column
	granted  string
	released int
}

func (p *page) Column(name string) (component.Column, error) {
	c, ok := p.columns[name]
	if !ok {
		return component.Column{}, errors.New("the block has no column " + name)
	}
	return c, nil
}

func (p *page) Writable(name string) (component.Column, error) {
	if name != p.granted {
		return component.Column{}, errors.New("may not write " + name)
	}
	return p.Column(name)
}

func (p *page) Lease() (component.Lease, error) { return p, nil }

func (p *page) Release() error {
	p.released++
	return nil
}

func column(name string, d hostabi.DType, rows, envs int, bytes []byte) component.Column {
	return component.Column{Name: name, DType: d, Rows: rows, Envs: envs, Elems: 1, StrideT: envs, StrideEnv: 1, StrideElem: 1, Bytes: bytes}
}

// doubler writes twice the value that it reads, plus the bonus if there is one.
type doubler struct {
	Factor             uint8 `toml:"factor"`
	from, bonus, to    component.Column
	out                component.Signal
	seen               struct{ Messages uint32 }
	declared           *component.Declared
	started, bonusSeen bool
}

func newDoubler() *doubler {
	c := &doubler{Factor: 2}
	c.declared = &component.Declared{
		Config: c, Check: func() error { return component.Require(c.Factor > 0, "factor", "is 0") }, State: &c.seen,
		Signals: []component.Output{{Name: "out", Payload: "p", Doc: "doubled", Schema: 7, Bind: &c.out}},
		Slots: []component.Input{{Name: "in", Payload: "q", Doc: "what is doubled", Schema: 8, Handle: c.handle, Columns: []component.Want{
			{Name: "from", Into: &c.from}, {Name: "to", Into: &c.to, Write: true}, {Name: "bonus", Into: &c.bonus, Optional: true}}}},
		OnStart: func(component.Host) { c.started = true },
	}
	return c
}

func (c *doubler) handle(m *component.Message) error {
	c.seen.Messages++
	c.bonusSeen = c.bonus.Bytes != nil
	for i, x := range c.from.Bytes {
		c.to.Bytes[i] = c.Factor * x
	}
	if m.T == math.MaxUint32 {
		return io.ErrUnexpectedEOF
	}
	return component.Pass(c.out, m)
}

func TestDeclared_HasThePortsInTheirOrder(t *testing.T) {
	want := component.Manifest{
		Signals: []component.Port{{Name: "out", Payload: "p", Doc: "doubled", Schema: 7}},
		Slots:   []component.Port{{Name: "in", Payload: "q", Doc: "what is doubled", Schema: 8}},
	}
	if got := newDoubler().declared.Manifest(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestDeclared_DecodesAndChecks(t *testing.T) {
	c := newDoubler()
	var e *component.ConfigError
	if err := c.declared.Configure(func(into any) error { into.(*doubler).Factor = 0; return nil }); !errors.As(err, &e) || *e != (component.ConfigError{Key: "factor", Reason: "is 0"}) {
		t.Errorf("a bad value: %v", err)
	}
	if err := c.declared.Configure(func(any) error { return io.EOF }); !errors.Is(err, io.EOF) {
		t.Errorf("what cannot be decoded: %v", err)
	}
	if err := c.declared.Configure(func(into any) error { into.(*doubler).Factor = 3; return nil }); err != nil || c.Factor != 3 {
		t.Errorf("a good value: %d, %v", c.Factor, err)
	}
	var none any
	if err := (&component.Declared{}).Configure(func(into any) error { none = into; return nil }); err != nil || reflect.TypeOf(none).Elem().NumField() != 0 {
		t.Errorf("without keys: %T, %v", none, err)
	}
}

func TestDeclared_SlotsHaveTheirColumns(t *testing.T) {
	c, d := newDoubler(), &desk{slots: map[string]func(*component.Message){}}
	if err := c.declared.Start(d); err != nil || !c.started {
		t.Fatalf("started %t, %v", c.started, err)
	}
	p := &page{columns: map[string]component.Column{"from": column("from", hostabi.U8, 1, 2, []byte{3, 4}), "to": column("to", hostabi.U8, 1, 2, []byte{0, 0})}, granted: "to"}
	bonus := p.columns["from"]
	for _, with := range []bool{true, false} {
		if delete(p.columns, "bonus"); with {
			p.columns["bonus"] = bonus
		}
		d.slots["in"](&component.Message{T: 5, Block: p})
		if d.failed != nil || c.bonusSeen != with || !slices.Equal(p.columns["to"].Bytes, []byte{6, 8}) {
			t.Errorf("with a bonus %t: %v, seen %t, wrote %v", with, d.failed, c.bonusSeen, p.columns["to"].Bytes)
		}
	}
	if len(d.sent) != 2 || d.sent[1].T != 5 || d.sent[1].Block != p {
		t.Errorf("passed on %+v", d.sent)
	}
}

func TestDeclared_AnErrorEndsTheRun(t *testing.T) {
	whole := map[string]component.Column{"from": column("from", hostabi.U8, 1, 1, []byte{1}), "to": column("to", hostabi.U8, 1, 1, []byte{0})}
	for want, m := range map[string]component.Message{
		"unexpected EOF":               {T: math.MaxUint32, Block: &page{columns: whole, granted: "to"}},
		"may not write to":             {Block: &page{columns: whole}},
		"the block has no column from": {Block: &page{granted: "to"}},
		"a message of the slot in names no block, whose columns it wants": {},
	} {
		c, d := newDoubler(), &desk{slots: map[string]func(*component.Message){}}
		if err := c.declared.Start(d); err != nil {
			t.Fatal(err)
		}
		if d.slots["in"](&m); d.failed == nil || d.failed.Error() != want || len(d.sent) != 0 {
			t.Errorf("%v and %d messages, want %s", d.failed, len(d.sent), want)
		}
	}
}

func TestDeclared_SavesItsState(t *testing.T) {
	c := newDoubler()
	c.seen.Messages = 300
	saved, err := c.declared.Snapshot()
	if err != nil || !slices.Equal(saved, binary.LittleEndian.AppendUint32(nil, 300)) {
		t.Fatalf("%v, %v", saved, err)
	}
	c = newDoubler()
	if err := c.declared.Restore(saved); err != nil || c.seen.Messages != 300 {
		t.Errorf("restored %d, %v", c.seen.Messages, err)
	}
	for _, other := range [][]byte{nil, saved[:3], append(saved, 0)} {
		if err := c.declared.Restore(other); err == nil || c.seen.Messages != 300 {
			t.Errorf("%d bytes: %v, and %d is there", len(other), err, c.seen.Messages)
		}
	}
	var stateless component.Declared
	if saved, err := stateless.Snapshot(); len(saved) != 0 || err != nil || stateless.Restore(nil) != nil {
		t.Errorf("without a state: %v, %v", saved, err)
	}
}

func TestKept_IsSentAndReleased(t *testing.T) {
	p, d := &page{}, &desk{}
	kept, err := component.Keep(&component.Message{T: 9, Block: p})
	if err != nil || p.released != 0 {
		t.Fatalf("%v, released %d times", err, p.released)
	}
	if err := kept.Send(d); err != nil || p.released != 1 || len(d.sent) != 1 || d.sent[0].T != 9 || d.sent[0].Block != p {
		t.Errorf("%v, released %d times, sent %+v", err, p.released, d.sent)
	}
}

func TestColumn_RowIsOneEnvironment(t *testing.T) {
	c := component.Column{Name: "obs", DType: hostabi.F32, Rows: 2, Envs: 3, Elems: 2, StrideT: 12, StrideEnv: 2, StrideElem: 6, Bytes: make([]byte, 96)}
	for i := range c.Float32() {
		c.Float32()[i] = float32(i)
	}
	row := c.Row(1, 2)
	if got := []float32{row.Float32()[0], row.Float32()[row.StrideElem]}; !slices.Equal(got, []float32{16, 22}) || row.Rows != 1 || row.Envs != 1 {
		t.Errorf("%v of %+v", got, row)
	}
	row.Float32()[0] = -1
	if c.Float32()[16] != -1 {
		t.Error("a row is not in place")
	}
	for _, at := range [][2]int{{-1, 0}, {2, 0}, {0, -1}, {0, 3}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("there is a row %v", at)
				}
			}()
			c.Row(at[0], at[1])
		}()
	}
}

func TestActRequest_TurnsAreThoseOfThePolicy(t *testing.T) {
	active := column("active", hostabi.U8, 2, 4, []byte{1, 1, 1, 1, 1, 0, 1, 1})
	policy := column("policy", hostabi.U8, 2, 4, []byte{0, 0, 0, 0, 3, 3, 3, 0})
	for _, c := range []struct {
		request component.ActRequest
		policy  component.Column
		want    []int
	}{
		{component.ActRequest{T: 1, Policy: 3}, policy, []int{0, 2}},
		{component.ActRequest{T: 1}, policy, []int{3}},
		{component.ActRequest{T: 1, Policy: 3}, component.Column{}, []int{0, 2, 3}},
		{component.ActRequest{T: 1, Policy: 3, ValueOnly: true}, policy, nil},
	} {
		if got := slices.Collect(c.request.Turns(active, c.policy)); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.request, got, c.want)
		}
	}
	for env := range (component.ActRequest{}).Turns(active, component.Column{}) {
		if env == 1 {
			break // the loop may end before the last
		}
	}
}
