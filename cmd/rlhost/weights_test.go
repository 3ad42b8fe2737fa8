package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
)

const weightsPipeline = `rlhost = 1
[run]
name = "weights"
stop = { env_steps = 500_000_000 }
evaluation = { episodes = 3 }
traces = "traces.jsonl"
[env.cartpole]
use = "cartpole@1"
[policy.main]
net = { hidden = [256, 256] }
[train]
preset = "fast"
mode = "sync"
env = "cartpole"
[component.rollout]
envs = 8
splits = 1
horizon = 32
[component.batcher]
dataset_rows = 1024
[component.learner]
minibatch = 512
epochs = 1
[group.actors]
components = ["rollout", "inference"]
count = 4
place = "spread"
[cluster]
listen = "127.0.0.1:0"
slots = 0
`

// A machine that has joined gets each version of a policy once, however many shares of the run it has taken over from others. The traces of
// datasets have spans of what is there.
func TestHosts_WeightsComeOnce(t *testing.T) {
	const (
		shares   = 4
		versions = 40
		bytes    = 4 * (2*(4*256+256+256*256+256) + 256*3 + 3) // of each: two hidden layers for the policy and for its value, two actions
	)
	w := newWorkshop(t)
	w.write("weights.toml", weightsPipeline)
	j := w.begin(false, "weights.toml")
	j.within("it listens", func() bool { _, err := os.Stat(filepath.Join(j.dir, "join.token")); return err == nil })
	_, with, _ := strings.Cut(j.output.String(), "rlhost join ")
	address, _, _ := strings.Cut(with, " ")
	cable := testkit.NewCable(t, address)
	join := func(name, slots, address string) *exec.Cmd {
		c := w.command("join", address, "--token-file", filepath.Join(j.dir, "join.token"), "--name", name, "--slots", slots)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill() }) // it may have ended
		return c
	}
	has := func(host string, shares int) {
		j.until(fmt.Sprintf("%s has %d shares", host, shares), func(s *control.StatusReply) bool {
			n := 0
			for i := range s.Components {
				if c := &s.Components[i]; c.Kind == "rollout" && c.Host == host {
					n++
				}
			}
			return n == shares
		})
	}
	var others []*exec.Cmd
	for _, name := range []string{"c", "d", "e"} {
		others = append(others, join(name, "1", address))
		has(name, 1)
	}
	all := join("all", "4", cable.Address())
	for i, c := range others {
		has("all", i+1)
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	has("all", shares)
	first := j.status().Policy
	s := j.until("all act", func(s *control.StatusReply) bool { return s.Policy > first+2 })
	from, came := s.Policy, cable.Back()
	s = j.until("there are more versions", func(s *control.StatusReply) bool { return s.Policy >= from+versions })
	came = cable.Back() - came
	got := float64(came) / bytes / float64(s.Policy-from)
	t.Logf("%d bytes came for %d versions: %.2f times the bytes of each", came, s.Policy-from, got)
	if got < 0.9 || got > 1.3 {
		t.Errorf("%d shares got each version %.2f times", shares, got)
	}
	j.stop()
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	found := stages(t, j.file("traces.jsonl"))
	for stage, want := range map[string]string{"rollout": "rollout[", "inference": "inference["} {
		for _, name := range found[stage] {
			if !strings.HasPrefix(name, want) || strings.HasSuffix(name, "*") {
				t.Errorf("a span of %s is of %q", stage, name)
			}
		}
	}
}
