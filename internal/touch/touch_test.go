package touch

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// axis is a direction that the program grows in. Its toy is added by new files and by lines in existing ones; a stranger
// has to find as many places.
type axis struct {
	name  string
	doors int // existing files that change
	edits []edit
	files map[string]string
	check func(t *testing.T, p *toys)
}

// edit puts lines in before the first occurrence of an anchor.
type edit struct{ file, anchor, text string }

// toys is the program with the toys of all axes.
type toys struct {
	root    string // the repository
	dir     string // a folder for files
	program string
	texts   map[string]string // files that are new or have changed, by their paths below root
}

// axes are all axes.
func axes() []func() axis {
	return []func() axis{kindAxis, envKeyAxis, learnerKeyAxis, wrapperAxis, backendAxis, layerAxis, activationAxis, encoderAxis, headAxis, commandAxis, verbAxis, guestAxis, transportAxis}
}

// TestTouch_OneOfEachKindTakesFewDoors adds a toy to each axis, builds the program with all of them and uses each.
func TestTouch_OneOfEachKindTakesFewDoors(t *testing.T) {
	t.Parallel()
	var all []axis
	for _, of := range axes() {
		all = append(all, of())
	}
	p := buildToys(t, all)
	for _, a := range all {
		t.Run(a.name, func(t *testing.T) {
			existing := map[string]bool{}
			for _, e := range a.edits {
				existing[e.file] = true
			}
			if len(existing) != a.doors {
				t.Errorf("%d existing files change, want %d: %v", len(existing), a.doors, existing)
			}
			a.check(t, p)
		})
	}
}

// buildToys builds the program from today's sources with the edits and files of all axes laid over them.
func buildToys(t *testing.T, axes []axis) *toys {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, a := range axes {
		for name, text := range a.files {
			if _, err := os.Stat(filepath.Join(root, name)); err == nil {
				t.Fatalf("%s is there already", name)
			}
			texts[name] = text
		}
		for _, e := range a.edits {
			if _, ok := texts[e.file]; !ok {
				text, err := os.ReadFile(filepath.Join(root, e.file))
				if err != nil {
					t.Fatal(err)
				}
				texts[e.file] = string(text)
			}
			if !strings.Contains(texts[e.file], e.anchor) {
				t.Fatalf("%s: %s has no %q any more", a.name, e.file, e.anchor)
			}
			texts[e.file] = strings.Replace(texts[e.file], e.anchor, e.text+e.anchor, 1)
		}
	}
	p := &toys{root: root, dir: t.TempDir(), texts: texts}
	p.program = filepath.Join(p.dir, "rlhost")
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for name, text := range texts {
		p.write(t, strings.ReplaceAll(name, "/", "+"), text)
		overlay.Replace[filepath.Join(root, name)] = filepath.Join(p.dir, strings.ReplaceAll(name, "/", "+"))
	}
	doc, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, "overlay.json", string(doc))
	p.build(t, p.program, "./cmd/rlhost")
	return p
}

// build builds a program with the toys.
func (p *toys) build(t *testing.T, program, from string) {
	t.Helper()
	build := exec.Command("go", "build", "-overlay", filepath.Join(p.dir, "overlay.json"), "-o", program, from)
	build.Dir = p.root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func (p *toys) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// says runs the program and wants a text in its output.
func (p *toys) says(t *testing.T, want string, args ...string) {
	t.Helper()
	c := exec.Command(p.program, args...)
	c.Dir = p.dir
	out, err := c.CombinedOutput()
	if !strings.Contains(string(out), want) {
		t.Errorf("rlhost %s: %v, without %q:\n%s", strings.Join(args, " "), err, want, out)
	}
}

// pipelineWith is a pipeline file with more lines in two of its tables, and more at its end.
func pipelineWith(env, end string) string {
	return "rlhost = 1\n[run]\nname = \"toys\"\nstop = { env_steps = 2048 }\n[env.task]\nuse = \"cartpole@1\"\n" + env +
		"[train]\npreset = \"fast\"\nenv = \"task\"\n" + end
}

func kindAxis() axis {
	return axis{name: "a kind of component with a payload", doors: 2,
		files: map[string]string{"plugins/toy/toy.go": `// Package toy is a kind of component.
package toy

import "github.com/rlhost/rlhost/core/component"

type toy struct {
	config struct {
		Size int ` + "`toml:\"size\"`" + `
	}
}

// New returns an unconfigured component.
func New() component.Component { return &toy{} }

func (c *toy) Manifest() component.Manifest {
	return component.Manifest{Signals: []component.Port{{Name: "toys", Payload: component.PayloadToy}}}
}

func (c *toy) Configure(decode func(into any) error) error { return decode(&c.config) }

func (c *toy) Start(h *component.Host) error {
	h.Log.Info("toys of a size", "size", c.config.Size)
	return nil
}

func (c *toy) Snapshot() (component.State, error) { return component.State{}, nil }

func (c *toy) Restore(component.State) error { return nil }

func (c *toy) Stop() error { return nil }
`},
		edits: []edit{
			{"core/component/payload.go", "\tPayloadEpisode    =", "\tPayloadToy = \"toy\"\n"},
			{"core/component/payload.go", "\t{Name: PayloadStats,", "\t{Name: PayloadToy, Block: true},\n"},
			{"plugins/builtin/parts.go", "\t\t\"batcher\":", "\t\t\"toy\": toy.New,\n"},
			{"plugins/builtin/parts.go", "\t\"github.com/rlhost/rlhost/plugins/runner\"", "\t\"github.com/rlhost/rlhost/plugins/toy\"\n"},
		},
		check: func(t *testing.T, p *toys) {
			p.write(t, "kind.toml", pipelineWith("", "[component.bear]\nkind = \"toy\"\nsize = 7\n"))
			p.says(t, "size = 7", "show", "--expanded", "kind.toml")
			p.says(t, "toys of a size", "train", "kind.toml", "--set", "run.evaluation.episodes=1")
		}}
}

func envKeyAxis() axis {
	return axis{name: "an [env] key", doors: 2,
		edits: []edit{
			{"core/env/source.go", "\tLimits `toml:", "\tToy string `toml:\"toy\" json:\"toy,omitempty\"`\n"},
			{"plugins/wasm/module/file.go", "\tif err := checkConfig(", "\tif c.Toy != \"\" {\n\t\treturn nil, nil, fmt.Errorf(\"the module plays with %s\", c.Toy)\n\t}\n"},
		},
		check: func(t *testing.T, p *toys) {
			p.write(t, "env.toml", pipelineWith("toy = \"bricks\"\n", ""))
			p.says(t, `toy = "bricks"`, "show", "--expanded", "env.toml")
			p.says(t, "the module plays with bricks", "train", "env.toml")
			p.says(t, "the module plays with bricks", "train", "env.toml", "--set", "env.task.runtime=process")
		}}
}

func learnerKeyAxis() axis {
	return axis{name: "a learner key", doors: 1,
		edits: []edit{
			{"plugins/learner/config.go", "\tEntropyCoef      float64 `toml", "\tToy float64 `toml:\"toy\"`\n"},
			{"plugins/learner/config.go", "\tif c.Policy == \"\" {", "\tif c.Toy > 1 {\n\t\tbad(\"toy\", \"is %g, want 1 at most\", c.Toy)\n\t}\n"},
		},
		check: func(t *testing.T, p *toys) {
			p.write(t, "learner.toml", pipelineWith("", "[component.learner]\ntoy = 0.5\n"))
			p.says(t, "toy = 0.5", "show", "--expanded", "learner.toml")
			p.says(t, "`toy` is 2, want 1 at most", "validate", "learner.toml", "--set", "component.learner.toy=2.0")
		}}
}

func wrapperAxis() axis {
	return axis{name: "a wrapper", doors: 1,
		files: map[string]string{"plugins/wrap/toy.go": `package wrap

import "fmt"

// rewardShift adds a number to rewards.
type rewardShift struct {
	rewards
	By float64 ` + "`toml:\"reward_shift\"`" + `
}

func (c *rewardShift) validate(bad func(key, reason, help string)) {
	if !(c.By >= -10 && c.By <= 10) {
		bad("reward_shift", fmt.Sprintf("is %g, want -10 to 10", c.By), "")
	}
}

func (c *rewardShift) around(w *wrapped) layer {
	by := float32(c.By)
	return shapedBy(w, func(r float32) float32 { return r + by })
}
`},
		edits: []edit{{"plugins/wrap/wrap.go", "\t{\"reward_clip\"", "\t{\"reward_shift\", func() wrapper { return new(rewardShift) }},\n"}},
		check: func(t *testing.T, p *toys) {
			p.write(t, "wrapped.toml", pipelineWith("wrap = [{ reward_shift = 0.5 }]\n", ""))
			p.says(t, "reward_shift = 0.5", "show", "--expanded", "wrapped.toml")
			p.says(t, "is 20, want -10 to 10", "validate", "wrapped.toml", "--set", "env.task.wrap=[{ reward_shift = 20.0 }]")
			p.says(t, "ended (env_steps)", "train", "wrapped.toml", "--set", "run.evaluation.episodes=1")
		}}
}

func backendAxis() axis {
	return axis{name: "a backend", doors: 1,
		files: map[string]string{"gpu/toy/toy.go": `// Package toy is a backend.
package toy

import (
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
)

type backend struct{ policy.Backend }

// New returns the backend.
func New() policy.Backend { return backend{cpu.New()} }

func (backend) Name() string { return "toy" }

func (backend) Kernels() string { return "toy kernels" }
`},
		edits: []edit{
			{"plugins/builtin/parts.go", "\"cpu\": func() policy.Backend", "\"toy\": backend.New, "},
			{"plugins/builtin/parts.go", "\t\"github.com/rlhost/rlhost/gpu/policy\"", "\tbackend \"github.com/rlhost/rlhost/gpu/toy\"\n"},
		},
		check: func(t *testing.T, p *toys) {
			p.write(t, "backend.toml", pipelineWith("", "[policy.main]\nbackend = \"toy\"\n"))
			p.says(t, "toy kernels", "train", "backend.toml", "--set", "run.evaluation.episodes=1")
		}}
}

func commandAxis() axis {
	return axis{name: "a command", doors: 1,
		files: map[string]string{"cmd/rlhost/toy.go": `package main

import "fmt"

type toyCommand struct{}

// Run plays.
func (c *toyCommand) Run(p *program) error {
	_, err := fmt.Fprintln(p.out, "played")
	return err
}
`},
		edits: []edit{{"cmd/rlhost/main.go", "\tVersion    versionCommand", "\tToy toyCommand `cmd:\"\" help:\"Play.\"`\n"}},
		check: func(t *testing.T, p *toys) { p.says(t, "played", "toy") }}
}

func verbAxis() axis {
	return axis{name: "a live verb with its command", doors: 3,
		files: map[string]string{
			"pipeline/session/toy.go": `package session

import (
	"context"

	"github.com/rlhost/rlhost/core/control"
)

// toys answers VerbToys.
func (r runVerbs) toys(context.Context, control.ToysRequest, control.Notice) (*control.ToysReply, error) {
	return &control.ToysReply{Toys: "bricks of " + r.job.Run.ID()}, nil
}
`,
			"cmd/rlhost/live_toys.go": `package main

import "github.com/rlhost/rlhost/core/control"

type toysCommand struct{ jobFlags }

// Run asks for toys.
func (c *toysCommand) Run(p *program) error {
	return tell(p, &c.jobFlags, control.VerbToys, control.ToysRequest{}, func(r *control.ToysReply) string { return r.Toys })
}
`,
			"core/control/toys.go": `package control

// ToysRequest asks for toys.
type ToysRequest struct{}

// ToysReply names them.
type ToysReply struct {
	Toys string ` + "`json:\"toys\"`" + `
}
`},
		edits: []edit{
			{"core/control/verb.go", "\tVerbStop       Verb", "\tVerbToys Verb = \"toys\"\n"},
			{"pipeline/session/commands.go", "\tcontrol.On(v, control.VerbCheckpoint", "\tcontrol.On(v, control.VerbToys, run.toys)\n"},
			{"cmd/rlhost/main.go", "\tVersion    versionCommand", "\tToys toysCommand `cmd:\"\" help:\"Ask a job for toys.\"`\n"},
		},
		check: func(t *testing.T, p *toys) {
			p.write(t, "verb.toml", pipelineWith("", ""))
			job := exec.Command(p.program, "train", "verb.toml", "--json", "--set", "run.stop.env_steps=0", "--set", "run.stop.wall_time=10m")
			job.Dir = p.dir
			out, err := job.StdoutPipe()
			if err == nil {
				err = job.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			for lines := bufio.NewScanner(out); lines.Scan() && !strings.Contains(lines.Text(), `"event":"progress"`); {
			}
			go io.Copy(io.Discard, out) // until the job ends
			p.says(t, "bricks of toys/0", "toys")
			if err := errors.Join(job.Process.Signal(os.Interrupt), ended(job, 130)); err != nil {
				t.Error(err)
			}
		}}
}

// ended waits for a program and returns an error unless it has ended with that status.
func ended(c *exec.Cmd, status int) error {
	if err := c.Wait(); c.ProcessState.ExitCode() != status {
		return fmt.Errorf("exit status %d (%w), want %d", c.ProcessState.ExitCode(), err, status)
	}
	return nil
}
