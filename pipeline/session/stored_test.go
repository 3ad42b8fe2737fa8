package session_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/export"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/learner"
	"github.com/rlhost/rlhost/plugins/opponents"
)

// frozenLab trains and resumes small runs in one folder.
type frozenLab struct {
	*testing.T
	parts *graph.Parts
	dir   string
}

func newFrozenLab(t *testing.T) *frozenLab {
	t.Helper()
	parts, engines := builtin.New(builtin.Options{})
	t.Cleanup(func() {
		if err := engines.Close(); err != nil {
			t.Error(err)
		}
	})
	return &frozenLab{t, parts, t.TempDir()}
}

// train begins a run with a checkpoint at each of its datasets, of 512 env steps, and with more tables.
func (l *frozenLab) train(datasets int, tables string, sets ...string) error {
	sets = append([]string{"run.dir=" + l.dir, fmt.Sprintf("run.stop.env_steps=%d", 512*datasets), "component.learner.lr_anneal_env_steps=0",
		"run.checkpoint.every=1us", "run.checkpoint.keep=2", "run.evaluation.episodes=1"}, sets...)
	g, problems := graphtest.Parse(l.beside("cartpole.toml"), []byte(cartpole+tables), graph.ParseOptions{Parts: l.parts, Sets: sets})
	if g == nil {
		return problems
	}
	_, err := session.Train(l.Context(), session.Options{Parts: l.parts, Graph: g, Policy: "main", Log: slog.New(slog.DiscardHandler)})
	return err
}

// beside returns the path of a file next to the pipeline's.
func (l *frozenLab) beside(name string) string { return filepath.Join(l.dir, "files", name) }

// resume resumes the newest run until it has so many datasets, with more tables in its pipeline.
func (l *frozenLab) resume(until int, tables string, sets ...string) error {
	run := l.run("cartpole")
	text, err := run.Pipeline()
	if err == nil {
		err = os.WriteFile(filepath.Join(run.Dir, runs.PipelineFile), append(text, tables...), 0o644)
	}
	if err != nil {
		return err
	}
	o := session.Options{Parts: l.parts, Policy: "main", Log: slog.New(slog.DiscardHandler), Sets: append([]string{fmt.Sprintf("run.stop.env_steps=%d", 512*until)}, sets...)}
	s, err := session.Resume(l.Context(), run, o)
	if err != nil {
		return err
	}
	_, err = s.Run(l.Context())
	return errors.Join(err, s.Close())
}

func (l *frozenLab) run(which string) *runs.Run {
	l.Helper()
	run, err := runs.Open(l.dir, which)
	if err != nil {
		l.Fatal(err)
	}
	return run
}

func (l *frozenLab) checkpoint(which, version string) runs.Checkpoint {
	l.Helper()
	c, err := l.run(which).Load(version)
	if err != nil {
		l.Fatal(err)
	}
	return c
}

// learned returns the policy of the learner of a checkpoint.
func (l *frozenLab) learned(c runs.Checkpoint) policy.Weights {
	l.Helper()
	_, w, err := learner.Weights(c.Components["learner"])
	if err != nil {
		l.Fatal(err)
	}
	return w
}

// freezing are the tables of a frozen policy, with its own lines, and of the component that publishes it.
func freezing(lines ...string) string {
	return "\n[component.frozen_old]\nkind = \"frozen\"\npolicy = \"old\"\n[policy.old]\n" + strings.Join(lines, "\n") + "\n"
}

// frozen returns the weights of the newest checkpoint's frozen policy.
func (l *frozenLab) frozen() (source string, w policy.Weights) {
	l.Helper()
	source, _, w, err := new(opponents.Frozen).Weights(l.checkpoint("cartpole", runs.Latest).Components["frozen_old"])
	if err != nil {
		l.Fatal(err)
	}
	return source, w
}

func same(a, b policy.Weights) bool {
	return a.Version == b.Version && slices.Equal(a.Params, b.Params)
}

// A version of the run itself comes from a checkpoint, and stays in the run's own state when that is gone.
func TestStored_AVersionOfTheRunComesFromItsCheckpoints(t *testing.T) {
	l := newFrozenLab(t)
	if err := l.train(3, ""); err != nil {
		t.Fatal(err)
	}
	want := l.learned(l.checkpoint("cartpole", "2"))
	if err := l.resume(4, freezing(`of="main"`, "version=2")); err != nil {
		t.Fatal(err)
	}
	if source, w := l.frozen(); source != "main@2" || !same(w, want) {
		t.Errorf("frozen is version %d from %q", w.Version, source)
	}
	for version := 5; version < 8; version++ { // version 2 goes
		if err := l.resume(version, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.run("cartpole").Load("2"); !errors.Is(err, runs.ErrNotFound) {
		t.Fatalf("the checkpoint is still there: %v", err)
	}
	if source, w := l.frozen(); source != "main@2" || !same(w, want) {
		t.Errorf("later it is version %d from %q", w.Version, source)
	}
	if err := l.resume(8, "", "policy.old.version=6"); err != nil {
		t.Fatal(err)
	}
	if source, w := l.frozen(); source != "main@6" || w.Version != 6 || same(w, want) {
		t.Errorf("frozen anew it is version %d from %q", w.Version, source)
	}
}

// A version in a pool of the run needs no separate checkpoint.
func TestStored_AVersionComesFromAPool(t *testing.T) {
	l := newFrozenLab(t)
	const pool = `
[policy.past]
of = "main"
[component.pool]
kind = "opponents"
policy = "past"
every_versions = 1
keep = 6
[[wire]]
signal = "learner.weights"
slot = "pool.on_weights"
mode = "latest"
depth = 1
on_full = "coalesce"
`
	if err := l.train(6, pool); err != nil {
		t.Fatal(err)
	}
	if _, err := l.run("cartpole").Load("3"); !errors.Is(err, runs.ErrNotFound) {
		t.Fatalf("there is a checkpoint of version 3: %v", err)
	}
	c := l.checkpoint("cartpole", runs.Latest)
	n, _, err := learner.Weights(c.Components["learner"])
	if err != nil {
		t.Fatal(err)
	}
	want, err := new(opponents.Pool).Weights(c.Components["pool"], &n, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.resume(7, freezing(`of="main"`, "version=3")); err != nil {
		t.Fatal(err)
	}
	if _, w := l.frozen(); !same(w, want) || w.Version != 3 {
		t.Errorf("frozen is version %d, not what the pool has", w.Version)
	}
}

// Weights come from another run, or from a file.
func TestStored_WeightsComeFromAnotherRunOrAFile(t *testing.T) {
	l := newFrozenLab(t)
	if err := l.train(2, "", "run.name=other"); err != nil {
		t.Fatal(err)
	}
	other := l.checkpoint("other", runs.Latest)
	x, err := session.Export(t.Context(), l.run("other"), &other, l.parts, "", export.Safetensors)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(l.dir, "other.safetensors")
	if err := os.WriteFile(file, x.File, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(l.beside("other"), 0o755); err != nil { // a folder that is called as the run is
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		lines   []string
		mode    string
		version string
	}{
		"a run":                 {lines: []string{`from="other/1"`}, version: "best"},
		"a version of a run":    {lines: []string{`from="other"`, "version=1"}, version: "1"},
		"the folder of a run":   {lines: []string{"from=" + fmt.Sprintf("%q", filepath.Join(l.dir, "other", "0001"))}, version: "best"},
		"a file of safetensors": {lines: []string{"from=" + fmt.Sprintf("%q", file)}, version: runs.Latest},
		"without zero lag":      {lines: []string{`from="other/1"`}, mode: "async", version: "best"},
	} {
		if err := l.train(1, freezing(append(c.lines, `env = "cartpole"`)...), "train.mode="+cmp.Or(c.mode, "sync")); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, which := policy.Weights{}, c.version
		if which == "best" {
			if _, err := l.run("other").Load(runs.Best); err != nil {
				which = runs.Latest
			}
		}
		want = l.learned(l.checkpoint("other", which))
		if source, w := l.frozen(); !same(w, want) {
			t.Errorf("%s: frozen is version %d from %q, want version %d", name, w.Version, source, want.Version)
		}
	}
	// The resumed run's checkpoint has them when the file is gone.
	_, want := l.frozen()
	if err := errors.Join(os.RemoveAll(filepath.Join(l.dir, "other")), os.Remove(file)); err != nil {
		t.Fatal(err)
	}
	if err := l.resume(2, ""); err != nil {
		t.Fatal(err)
	}
	if _, w := l.frozen(); !same(w, want) {
		t.Errorf("resumed without the file it is version %d", w.Version)
	}
}

func TestStored_SaysWhatIsNotThere(t *testing.T) {
	l := newFrozenLab(t)
	check := func(err error, code string, texts ...string) {
		t.Helper()
		var e *session.Error
		if !errors.As(err, &e) || e.Kind != session.Config || !strings.Contains(err.Error(), "error["+code+"]") {
			t.Errorf("%v, want an error with code %s", err, code)
			return
		}
		for _, text := range append(texts, " help: ") {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%v, want %q", err, text)
			}
		}
	}
	gone := l.train(1, freezing(`of="main"`, "version=4"))
	check(gone, players.CodeGone)
	want := `cartpole.toml:19:1: error[E058]: policy "old": version 4 of policy "main" is not there: no checkpoint of run cartpole/0001 has a version of it
19 | version=4
   | ^^^^^^^ help: freeze a version once it is saved: run ` + "`rlhost checkpoint` while it is the newest, then reload"
	if text := strings.TrimPrefix(gone.Error(), filepath.Dir(l.beside("x"))+"/"); text != want {
		t.Errorf("a version that is not there:\n%s\nwant:\n%s", text, want)
	}
	if err := l.train(4, ""); err != nil {
		t.Fatal(err)
	}
	other := func(from string) string {
		return freezing("from = "+fmt.Sprintf("%q", from), `env = "cartpole"`, "net = { hidden = [3] }")
	}
	check(l.train(1, other("cartpole/2")), policy.CodeNetwork, "dense(64)", "dense(3)")
	check(l.resume(5, freezing(`of="main"`, "version=1")), players.CodeGone, "version 1 of policy \"main\"", "have 3, 4", "run.checkpoint.keep")
	check(l.train(1, other("cartpole")), "E012", "this run itself")
	check(l.train(1, other("elsewhere")), "E012", "elsewhere", "rlhost runs")
	empty := filepath.Join(l.dir, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	check(l.train(1, other(empty)), "E012", empty+" holds no run", "rlhost runs")
	broken := filepath.Join(l.dir, "x.safetensors")
	if err := os.WriteFile(broken, []byte("nothing"), 0o644); err != nil {
		t.Fatal(err)
	}
	check(l.train(1, other(broken)), "E012", "x.safetensors")
}

// In a running run a version can be frozen once a checkpoint has it; before, the error says so and nothing changes.
func TestStored_AVersionIsFrozenDuringTheRun(t *testing.T) {
	l := newFrozenLab(t)
	text := strings.ReplaceAll(selfPlay, "stop = { env_steps = 16_384 }", "stop = { env_steps = 100_000_000 }\ndir = \""+l.dir+"\"\ncheckpoint = { every = \"1h\" }")
	text = strings.Replace(text, "mode = \"sync\"", "mode = \"sync\"\n[swap]\ntrial_envs = 0\nprobation = \"0s\"", 1)
	g, problems := graphtest.Parse("four.toml", []byte(text), graph.ParseOptions{Parts: l.parts})
	if g == nil {
		t.Fatal(problems)
	}
	s, err := session.Begin(t.Context(), session.Options{Parts: l.parts, Graph: g, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ended := running(context.Background(), s)
	c := dial(t, control.SocketPath(s.Folder().Dir))
	reload := func(version uint64) (r control.ReloadReply, err error) {
		file := strings.Replace(text, "opponents = { past = 0.5 }", fmt.Sprintf("opponents = { past = 0.3, \"main@%d\" = 0.2 }", version), 1)
		err = c.Do(t.Context(), control.VerbReload, control.ReloadRequest{File: filepath.Join(l.dir, "four.toml"), Source: file}, &r, nil)
		return r, err
	}
	var e *control.Error
	if _, err := reload(3); !errors.As(err, &e) || !strings.Contains(e.Problems, "four.toml:") || !strings.Contains(e.Problems, "error["+players.CodeGone+"]: ") ||
		!strings.Contains(e.Problems, "rlhost checkpoint") {
		t.Errorf("version 3 without a checkpoint: %v", err)
	}
	var saved control.CheckpointReply
	if err := c.Do(t.Context(), control.VerbCheckpoint, nil, &saved, nil); err != nil {
		t.Fatal(err)
	}
	if r, err := reload(saved.PolicyVersion); err != nil || r.Outcome != control.Committed {
		t.Errorf("version %d of a checkpoint: %+v, %v", saved.PolicyVersion, r, err)
	}
	want := l.learned(l.checkpoint("four", runs.Latest))
	s.Stop(false)
	if err := errors.Join(<-ended, c.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("frozen_main_%d", saved.PolicyVersion)
	source, _, w, err := new(opponents.Frozen).Weights(l.checkpoint("four", runs.Latest).Components[name])
	if err != nil || source != fmt.Sprintf("main@%d", saved.PolicyVersion) || !same(w, want) {
		t.Errorf("%s acts with version %d from %q (%v)", name, w.Version, source, err)
	}
}

// dial connects to a run that begins.
func dial(t *testing.T, socket string) (c *control.Client) {
	t.Helper()
	testkit.Until(t, "the run takes commands", func() (ok bool) {
		var err error
		c, err = control.Dial(t.Context(), socket)
		return err == nil
	})
	return c
}

// A policy from a run has that run's network and inputs without saying them, keeps its own words, and needs the run no more once it has begun.
func TestStored_ARunGivesTheNetworkToo(t *testing.T) {
	l := newFrozenLab(t)
	if err := l.train(2, "[policy.main]\nnet = { hidden = [3] }\nnormalize_obs = true\nshare_trunk = true\n", "run.name=other"); err != nil {
		t.Fatal(err)
	}
	from := []string{`from = "other"`, `env = "cartpole"`}
	if err := l.train(1, freezing(from...)); err != nil {
		t.Fatalf("without a network of its own: %v", err)
	}
	source, w := l.frozen()
	if want := l.learned(l.checkpoint("other", runs.Latest)); source != "other" || !same(w, want) || len(w.ObsMean) == 0 || !slices.Equal(w.ObsMean, want.ObsMean) {
		t.Errorf("frozen is version %d from %q", w.Version, source)
	}
	text, err := l.run("cartpole").Pipeline()
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n[policy.old]\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, line := range []string{"hidden = [3]", "normalize_obs = true", "share_trunk = true"} {
		if !strings.Contains(table, line) {
			t.Errorf("the run's pipeline has\n%s\nwithout %s", table, line)
		}
	}
	if err := l.train(1, freezing(append(from, "normalize_obs = false")...)); err == nil || !strings.Contains(err.Error(), "error["+policy.CodeNetwork+"]") {
		t.Errorf("with other inputs than the run's: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(l.dir, "other")); err != nil {
		t.Fatal(err)
	}
	if err := l.resume(2, ""); err != nil {
		t.Errorf("resumed without the other run: %v", err)
	}
}
