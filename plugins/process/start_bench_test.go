package process

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/rollout"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// userProgram builds the example of a plugin as its README says.
func userProgram(b *testing.B) Program {
	b.Helper()
	path := filepath.Join(b.TempDir(), "shaper")
	build := exec.Command("go", "build", "-o", path, "../../examples/plugins/process-go")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return Program{Name: "shaper", Path: path}
}

// timed notes when a component is started, by when there is a block of trajectories for it.
type timed struct {
	component.Component
	block hostabi.Handle
	begin time.Time
}

// Start is the component's.
func (c *timed) Start(h *component.Host) (err error) {
	if c.block, err = block(h.Arenas); err != nil {
		return err
	}
	c.begin = time.Now()
	return c.Component.Start(h)
}

// block returns one of an arena of its own.
func block(arenas *arena.Set) (hostabi.Handle, error) {
	schema, err := rollout.NewSchema(plugintest.New(plugintest.Script{}).Spec(), rollout.Shape{Steps: 2, Envs: 2})
	if err != nil {
		return 0, err
	}
	a, err := arenas.Add(arena.Config{Name: "test", Blocks: 1, BlockBytes: schema.Bytes, Schema: schema})
	if err != nil {
		return 0, err
	}
	loan, err := a.Loan()
	if err != nil {
		return 0, err
	}
	clear(loan.Bytes())
	return loan.Commit()
}

// BenchmarkStart is a program as a user builds it, from the start of its component until the host has received the
// first message from it: an answer to one that waited for it, with a block of trajectories. Beside it: how long the
// same program takes to say that it was not started by a host, which the kernel, Go and the packages' own
// initialization take.
//
// A program whose sum is checked takes as long longer as its file takes to read and sum.
func BenchmarkStart(b *testing.B) {
	p := userProgram(b)
	b.Run("sum=no", func(b *testing.B) { benchmarkStart(b, p) })
	file, err := os.ReadFile(p.Path)
	if err != nil {
		b.Fatal(err)
	}
	p.SHA256 = fmt.Sprintf("%x", sha256.Sum256(file))
	b.Run("sum=yes", func(b *testing.B) { benchmarkStart(b, p) })
}

func benchmarkStart(b *testing.B, p Program) {
	r, _ := newRuntime(b, Options{})
	parts := map[string][]time.Duration{}
	for b.Loop() {
		begin := time.Now()
		_ = exec.Command(p.Path).Run() // its status says that there is no host
		parts["bare"] = append(parts["bare"], time.Since(begin))
		c, err := r.Component(context.Background(), p, "reward_shaper")
		if err != nil {
			b.Fatal(err)
		}
		for part, took := range firstMessage(b, c) {
			parts[part] = append(parts[part], took)
		}
	}
	b.ReportMetric(0, "ns/op") // of two programs, and of the test's own stage
	for part, list := range parts {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2].Seconds()*1000, part+"-ms")
	}
	b.ReportMetric(parts["all"][0].Seconds()*1000, "best-ms")
}

// firstMessage starts a shaper and stops it, and returns how long its parts took.
func firstMessage(b *testing.B, c component.Component) map[string]time.Duration {
	t := &timed{Component: c}
	s := plugintest.NewStage(b, t, plugintest.StageOptions{})
	defer s.Close()
	all := bus.Options{Mode: bus.All, Depth: 4, Overflow: bus.Block}
	came := make(chan time.Time, 1)
	s.Handle("trajectories", all, func(*hostabi.Message) { came <- time.Now() })
	if err := s.To("on_trajectories", false, all).Emit(hostabi.Message{Handle: t.block}); err != nil {
		b.Fatal(err)
	}
	s.Done(t.block)
	first := <-came
	took := c.(*proxy).life.process.took
	return map[string]time.Duration{
		"all": first.Sub(t.begin), "verify": took.verify, "open": took.open, "execute": took.execute, "hello": took.hello,
		"dial": took.dial, "describe": took.describe, "configure": took.configure, "start": took.start,
		"first": first.Sub(took.since),
	}
}
