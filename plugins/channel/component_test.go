package channel

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/channel/remote"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// newRig starts a component of the name jobs, of a table that change makes of the default one.
func newRig(t *testing.T, change func(c *config)) (*plugintest.Rig, *Component) {
	t.Helper()
	testkit.Sockets(t)
	c := New().(*Component)
	r := plugintest.NewRig(t, c, plugintest.RigOptions{Name: "jobs"}, func(into any) error {
		change(into.(*config))
		return nil
	})
	return r, c
}

// decoded returns an item as Python reads it, with arrays as lists.
func decoded(t *testing.T, data []byte) map[string]any {
	t.Helper()
	python, err := filepath.Abs("../../.venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(python, "-c", `import json, sys, numpy
from rlhost.channel import codec
item = codec.decode(sys.stdin.buffer.read())
print(json.dumps({k: numpy.nan_to_num(v).tolist() if isinstance(v, numpy.ndarray) else v for k, v in item.items()}))`)
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

func TestComponent_EpisodesBecomeItems(t *testing.T) {
	r, c := newRig(t, func(c *config) { c.Key, c.Weight, c.Maxsize = "env", "length", 2 })
	episodes := r.To("put")
	for n := range 3 {
		e := trajectory.Episode{Return: -1.5, Length: uint32(10 + n), Env: 7, Agent: 1, Terminated: n == 0}
		m := e.Message()
		m.PolicyVersion = 4
		if err := episodes.Emit(m); err != nil {
			t.Fatal(err)
		}
	}
	r.MustSettle()
	client, err := remote.Connect("jobs")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	item, err := client.Get(t.Context(), "7")
	if err != nil || item.Weight != 10 {
		t.Fatalf("weight %v, %v", item.Weight, err)
	}
	want := map[string]any{"env": 7.0, "agent": 1.0, "return": -1.5, "length": 10.0, "terminated": true, "policy_version": 4.0}
	if got := decoded(t, item.Data); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if n := c.dropped.Value(); n != 1 {
		t.Errorf("%d items dropped for want of room, want 1", n)
	}
}

func TestComponent_TrajectoriesBecomeItems(t *testing.T) {
	r, _ := newRig(t, func(c *config) { c.Takes, c.Weight, c.Key = component.PayloadTrajectory, "rows", "split" })
	p := plugintest.New(plugintest.Script{})
	schema, err := trajectory.NewSchema(p.Spec(), trajectory.Shape{Steps: 4, Envs: 2})
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := r.Host.Arenas.Add(arena.Config{Name: "blocks", Blocks: 4, BlockBytes: schema.Bytes, Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	plugintest.Give(t, r.To("put"), hostabi.Message{Split: 1}, blocks, func(block []byte) {
		b := trajectory.Trajectory{Schema: schema, Mem: block}
		*b.Meta() = trajectory.Meta{ValidRows: 8}
		for i := range 8 {
			row := b.Row(trajectory.Reward, i/2)
			row.Float32()[(i%2)*row.StrideRow/4] = float32(i)
		}
	})
	r.MustSettle()
	client, err := remote.Connect("jobs")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	item, err := client.Get(t.Context(), "1")
	if err != nil || item.Weight != 8 {
		t.Fatalf("weight %v, %v", item.Weight, err)
	}
	got := decoded(t, item.Data)
	if want := []any{[]any{0.0, 1.0}, []any{2.0, 3.0}, []any{4.0, 5.0}, []any{6.0, 7.0}}; !reflect.DeepEqual(got["reward"], want) {
		t.Errorf("rewards %v, want %v", got["reward"], want)
	}
	for i := range schema.Columns() {
		if name := schema.Columns()[i].Column.String(); got[name] == nil {
			t.Errorf("there is no column %s", name)
		}
	}
}

func TestComponent_ChecksItsTable(t *testing.T) {
	for key, change := range map[string]func(c *config){
		"takes": func(c *config) { c.Takes = "weights" }, "key": func(c *config) { c.Key = "return" }, "weight": func(c *config) { c.Weight = "return" },
		"name": func(c *config) { c.Name = "a/b" }, "maxsize": func(c *config) { c.Maxsize = -1 }, "memory": func(c *config) { c.Memory = 0 },
		"clients": func(c *config) { c.Clients = 0 },
	} {
		err := New().Configure(func(into any) error { change(into.(*config)); return nil })
		var wrong *component.ConfigError
		if !errors.As(err, &wrong) || wrong.Key != key {
			t.Errorf("a wrong %s: %v", key, err)
		}
	}
}
