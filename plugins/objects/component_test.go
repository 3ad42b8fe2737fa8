package objects

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/ipc"
	"github.com/rlhost/rlhost/core/objects/wire"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/objects/store"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// newRig starts a component of a table that change makes of the default one.
func newRig(t *testing.T, change func(c *config)) (*plugintest.Rig, *Component) {
	t.Helper()
	c, path := New(), socketPath(t)
	r := plugintest.NewRig(t, c, plugintest.RigOptions{Name: "replay"}, func(into any) error {
		into.(*config).Socket = path
		change(into.(*config))
		return nil
	})
	return r, c
}

func TestComponent_ServesFromStartToStop(t *testing.T) {
	r, c := newRig(t, func(*config) {})
	path := c.server.Path()
	connect(t, path).must(t, wire.Request{Op: wire.OpList})
	second := New()
	err := second.Configure(func(into any) error { into.(*config).Socket = path; return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Start(r.Host); !errors.Is(err, ipc.ErrInUse) {
		t.Errorf("a second component at that path = %v, want ipc.ErrInUse", err)
	}
	if _, err := c.Snapshot(); err != nil {
		t.Errorf("Snapshot = %v", err)
	}
	if err := errors.Join(c.Restore(component.State{}), c.Stop(), c.Stop()); err != nil {
		t.Errorf("Stop = %v", err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

func TestComponent_ChecksItsConfiguration(t *testing.T) {
	for key, change := range map[string]func(c *config){
		"memory": func(c *config) { c.Memory = -1 }, "clients": func(c *config) { c.Clients = 0 }, "name": func(c *config) { c.Name = "a/b" },
		"object": func(c *config) { c.Object = "" }, "takes": func(c *config) { c.Takes = "weights" }, "capacity": func(c *config) { c.Capacity = 0 },
	} {
		err := New().Configure(func(into any) error { change(into.(*config)); return nil })
		var wrong *component.ConfigError
		if !errors.As(err, &wrong) || wrong.Key != key {
			t.Errorf("a wrong %s: %v", key, err)
		}
	}
}

// entries returns the bytes of an object's entries, by index.
func entries(t *testing.T, s *store.Store, name string) map[uint64][]byte {
	t.Helper()
	u, err := s.Session("test")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	do := func(op store.Op) *store.Op {
		if err := u.Wait(t.Context(), &op); err != nil {
			t.Fatal(err)
		}
		return &op
	}
	id := do(store.Op{Kind: store.OpOpen, Name: name}).Object
	layout, err := s.Layout(id)
	if err != nil {
		t.Fatal(err)
	}
	file, err := s.File(id, false)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	found := map[uint64][]byte{}
	for _, v := range do(store.Op{Kind: store.OpBatch, Object: id, Most: 100}).Views {
		size, _ := v.Values[0].Size()
		data := make([]byte, size)
		if _, err := file.ReadAt(data, int64(layout.Columns[0].At+int(v.Block)*layout.Columns[0].Stride)); err != nil {
			t.Fatal(err)
		}
		found[v.Index] = data
	}
	return found
}

// decoded returns an entry as Python reads it, with arrays as lists.
func decoded(t *testing.T, data []byte) map[string]any {
	t.Helper()
	python, err := filepath.Abs("../../.venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(python, "-c", `import json, sys, numpy
from rlhost import plain
item = plain.loads(sys.stdin.buffer.read())
print(json.dumps({k: v.tolist() if isinstance(v, numpy.ndarray) else v for k, v in item.items()}))`)
	c.Stdin = strings.NewReader(string(data))
	out, err := c.Output()
	if err != nil {
		t.Skipf("run make tools: %v", err)
	}
	var item map[string]any
	if err := json.Unmarshal(out, &item); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return item
}

func episode(n int) hostabi.Message {
	m := trajectory.Episode{Return: -1.5, Length: uint32(10 + n), Env: 7, Agent: 1, Terminated: n == 0}.Message()
	m.PolicyVersion = 4
	return m
}

func TestComponent_PushDropsWhatPutReplaces(t *testing.T) {
	r, c := newRig(t, func(c *config) { c.Capacity = 2 })
	var told []uint64
	r.From("changed", func(m *hostabi.Message) { told = append(told, m.Inline[0]) })
	push, put := r.To("push"), r.To("put")
	for n := range 3 {
		if err := push.Emit(episode(n)); err != nil {
			t.Fatal(err)
		}
	}
	r.MustSettle()
	if n := c.writer.dropped.Value(); n != 1 {
		t.Errorf("%d entries are dropped for want of room, want 1", n)
	}
	if err := put.Emit(episode(3)); err != nil {
		t.Fatal(err)
	}
	r.MustRun(func() bool { return len(told) > 0 && told[len(told)-1] == 2 })
	got := entries(t, c.server.Store(), "items")
	if len(got) != 2 || got[1] == nil || got[2] == nil {
		t.Fatalf("entries %v, want 1 and 2", got)
	}
	want := map[string]any{"env": 7.0, "agent": 1.0, "return": -1.5, "length": 13.0, "terminated": false, "policy_version": 4.0}
	if item := decoded(t, got[2]); !reflect.DeepEqual(item, want) {
		t.Errorf("%v, want %v", item, want)
	}
	for i, index := range told {
		if i > 0 && index <= told[i-1] {
			t.Errorf("the signal tells of %v, want indices that grow", told)
		}
	}
}

func TestComponent_TellsOfEntriesOfPrograms(t *testing.T) {
	r, c := newRig(t, func(c *config) { c.Object = "orders" })
	var told []uint64
	r.From("changed", func(m *hostabi.Message) { told = append(told, m.Inline[0]) })
	program := connect(t, c.server.Path())
	write := func() {
		id := program.create(t, "orders", 4)
		w := program.must(t, wire.Request{Op: wire.OpNew, Object: id})
		program.must(t, wire.Request{Op: wire.OpCommit, Claim: w.Claim, Values: []wire.Value{wire.ValueOf(wire.Bytes, 1)}})
	}
	write()
	r.MustRun(func() bool { return len(told) == 1 })
	program.must(t, wire.Request{Op: wire.OpRemove, Object: program.must(t, wire.Request{Op: wire.OpOpen, Name: "orders", Flags: wire.NoFile}).Object})
	write() // another object of that name
	r.MustRun(func() bool { return len(told) == 2 })
	if !reflect.DeepEqual(told, []uint64{0, 0}) {
		t.Errorf("told of %v, want the first entry of each", told)
	}
	if err := r.To("push").Emit(episode(0)); err != nil { // it is larger than the program's blocks
		t.Fatal(err)
	}
	r.MustRun(func() bool { return len(told) == 3 })
	if told[2] != 1 || len(entries(t, c.server.Store(), "orders")) != 2 {
		t.Errorf("told of %v", told)
	}
}

func TestComponent_TrajectoriesBecomeEntries(t *testing.T) {
	r, c := newRig(t, func(c *config) { c.Takes = component.PayloadTrajectory })
	p := plugintest.New(plugintest.Script{})
	schema, err := trajectory.NewSchema(p.Spec(), trajectory.Shape{Steps: 4, Envs: 2})
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := r.Host.Arenas.Add(arena.Config{Name: "blocks", Blocks: 4, BlockBytes: schema.Bytes, Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	plugintest.Give(t, r.To("put"), hostabi.Message{}, blocks, func(block []byte) {
		clear(block)
		b := trajectory.Trajectory{Schema: schema, Mem: block}
		*b.Meta() = trajectory.Meta{ValidRows: 8}
		for i := range 8 {
			row := b.Row(trajectory.Reward, i/2)
			row.Float32()[(i%2)*row.StrideRow/4] = float32(i)
		}
	})
	r.MustSettle()
	got := decoded(t, entries(t, c.server.Store(), "items")[0])
	if want := []any{[]any{0.0, 1.0}, []any{2.0, 3.0}, []any{4.0, 5.0}, []any{6.0, 7.0}}; !reflect.DeepEqual(got["reward"], want) {
		t.Errorf("rewards %v, want %v", got["reward"], want)
	}
	for i := range schema.Columns() {
		if name := schema.Columns()[i].Column.String(); got[name] == nil {
			t.Errorf("there is no column %s", name)
		}
	}
}
