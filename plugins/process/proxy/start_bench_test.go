package proxy

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/internal/spawntest"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// userProgram builds the example of a plugin as its README says.
func userProgram(b *testing.B) spawn.Program {
	b.Helper()
	path := filepath.Join(b.TempDir(), "shaper")
	testkit.Build(b, "../../../examples/plugins/process-go", path)
	return spawn.Program{Name: "shaper", Path: path}
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

// block returns a block of a new arena.
func block(arenas *arena.Set) (hostabi.Handle, error) {
	schema, err := trajectory.NewSchema(plugintest.New(plugintest.Script{}).Spec(), trajectory.Shape{Steps: 2, Envs: 2})
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

// BenchmarkStart measures a program as a user builds it, from the start of its component until the host has received its first
// message: an answer to a waiting request, with a block of trajectories. Then the program is killed, and the time counts again
// from the start of its successor, after the pause before it. It also reports how long the same program takes to say that it was
// not started by a host, which is the time of the kernel, Go and the packages' initialization, its page faults, and its size.
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

func benchmarkStart(b *testing.B, p spawn.Program) {
	r, _ := spawntest.NewRuntime(b, spawn.Options{})
	p.Backoff = spawn.Backoff{First: time.Millisecond, Longest: time.Millisecond, Healthy: time.Hour}
	info, err := os.Stat(p.Path)
	if err != nil {
		b.Fatal(err)
	}
	parts := map[string][]float64{}
	for b.Loop() {
		runBare(p.Path, parts)
		c, err := New(context.Background(), r, p, "reward_shaper")
		if err != nil {
			b.Fatal(err)
		}
		firstMessages(b, c, parts)
	}
	b.ReportMetric(0, "ns/op") // of two programs, and of the test's own stage
	b.ReportMetric(float64(info.Size())/1e6, "MB")
	for part, list := range parts {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], part)
	}
	b.ReportMetric(parts["all-ms"][0], "best-ms")
	b.ReportMetric(parts["restart-ms"][0], "restart-best-ms")
}

// runBare runs the program without a host.
func runBare(path string, parts map[string][]float64) {
	begin := time.Now()
	cmd := exec.Command(path)
	_ = cmd.Run() // its status says that there is no host
	note(parts, "bare-ms", time.Since(begin))
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		parts["bare-faults"] = append(parts["bare-faults"], float64(usage.Minflt))
	}
}

func note(parts map[string][]float64, part string, took time.Duration) {
	parts[part] = append(parts[part], took.Seconds()*1000)
}

// firstMessages starts a shaper, kills it once, and stops it. It notes how long the parts of both starts took.
func firstMessages(b *testing.B, c component.Component, parts map[string][]float64) {
	t := &timed{Component: c}
	s := plugintest.NewStage(b, t, plugintest.StageOptions{Grants: map[string][]string{"on_trajectories": {"reward"}}})
	defer s.Close()
	all := bus.Options{Mode: bus.All, Depth: 4, Overflow: bus.Block}
	came := make(chan time.Time, 4) // the successor may be given the first message as well
	s.Handle("trajectories", all, func(*hostabi.Message) { came <- time.Now() })
	to := s.To("on_trajectories", false, all)
	emit := func() time.Time {
		if err := to.Emit(hostabi.Message{Handle: t.block}); err != nil {
			b.Fatal(err)
		}
		return <-came
	}
	x := c.(*proxy)
	first := emit()
	l := x.newestSession()
	took := l.process.Took
	note(parts, "all-ms", first.Sub(t.begin))
	for _, part := range []struct {
		name string
		took time.Duration
	}{
		{"open-ms", took.Open}, {"verify-ms", took.Verify}, {"execute-ms", took.Execute}, {"hello-ms", took.Hello},
		{"dial-ms", took.Dial}, {"describe-ms", took.Describe}, {"configure-ms", took.Configure}, {"start-ms", took.Start},
		{"first-ms", first.Sub(took.Since)},
	} {
		note(parts, part.name, part.took)
	}
	l.process.Kill()
	<-l.process.Died()
	first = emit()
	s.Done(t.block)
	l = x.newestSession()
	note(parts, "restart-ms", first.Sub(l.since))
	note(parts, "restart-verify-ms", l.process.Took.Verify)
}
