package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
)

const frozen = "../../pipeline/runs/testdata/frozen"

// A run saved by an older version is evaluated with the same returns, and training continues from it: in the same run, bit for
// bit where that was promised, and in a new one. Modules of a candidate of the ABI, or older, are refused, and built again:
// learning and counts are kept, new episodes begin, and the program says so.
func TestFrozen_RunsOfOlderVersionsContinue(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	if err := os.CopyFS(w.dir, os.DirFS(frozen)); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(frozen + "/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d checkpoints, %v", len(files), err)
	}
	for _, name := range []string{"fast-sync", "swapped", "taxi-masks"} {
		w.fails(exitPlugin, []string{"eval", "runs/" + name + "/0001"}, "error[E050]", "is built for a candidate of ABI 1",
			"build it again with the SDK that belongs to this rlhost")
	}
	w.copy("cartpole.wasm", builtCartPole)
	candidates, err := filepath.Glob(frozen + "/*-1rc.wasm")
	if err != nil || len(candidates) < 6 {
		t.Fatalf("%d modules, %v", len(candidates), err)
	}
	for _, file := range candidates {
		w.write(filepath.Base(file), builtAgain(t, file))
	}
	swapped := "runs/swapped/0001/pipeline.toml"
	w.write(swapped, preReleaseModule.ReplaceAllString(w.read(swapped), `use = "cartpole@1"`))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) { goOnFrom(w.of(t), name) })
	}
}

// builtCartPole is the module of the runs that had one of the user's, built again.
const builtCartPole = "../../examples/plugins/cartpole-c/cartpole.wasm"

// builtAgain returns a module of the ABI's candidate as it is when it is built again: nothing but its marker is another.
func builtAgain(t *testing.T, file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const was, exports = "\x0brl_abi_v1rc", 7
	out := b[:8:8]
	for rest := b[8:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		section := rest[1+n : 1+n+int(size)]
		if rest[0] == exports {
			section = bytes.Replace(section, []byte(was), []byte("\x09"+hostabi.ExportABI), 1)
		}
		out = append(binary.AppendUvarint(append(out, rest[0]), uint64(len(section))), section...)
		rest = rest[1+n+int(size):]
	}
	return string(out)
}

// preReleaseModule is the key of a module that a swap left in the run's folder.
var preReleaseModule = regexp.MustCompile(`(?m)^use = "plugins/[0-9a-f]{64}\.wasm"$`)

// movedRewards is a key that has become wrappers.
var movedRewards = regexp.MustCompile(`(?m)^reward = \{ scale = 0.5, clip = 8.0, sign = false \}$`)

// formerNames gives the keys of a stored pipeline, which is converted where it lies, their present names in a copy of it.
var formerNames = strings.NewReplacer(", wall = ", ", wall_time = ", ", keep_every = ", ", keep_every_env_steps = ", ", deterministic = ", ", greedy = ",
	", every = ", ", every_env_steps = ", "\ncanary = ", "\ntrial_envs = ", "\nverify = ", "\ntrial_steps = ", `log_std = "free"`, `log_std = "parameter"`,
	"\nanneal_env_steps = ", "\nlr_anneal_env_steps = ", "\nentropy = ", "\nentropy_coef = ", "\nclip_grad_apart = ", "\nseparate_grad_norms = ",
	"\nrecompute = ", "\nvtrace_recompute = ")

// withWrappers returns a stored pipeline, or, if it has a key that error E057 is about, a copy next to it with the line that the error
// proposes.
func withWrappers(w *workshop, file string) string {
	text := w.read(file)
	if !movedRewards.MatchString(text) {
		return file
	}
	w.fails(exitConfig, []string{"validate", file}, "error[E057]", "write wrap = [{ reward_scale = 0.5 }, { reward_clip = 8 }] in [env.taxi]")
	text = formerNames.Replace(movedRewards.ReplaceAllString(text, ""))
	next := strings.TrimSuffix(file, ".toml") + "-wrapped.toml"
	w.write(next, strings.Replace(text, "[env.taxi]\n", "[env.taxi]\nwrap = [{ reward_scale = 0.5 }, { reward_clip = 8 }]\n", 1))
	return next
}

// candidate is what the file of a run calls the candidate of the environment ABI, whose modules are built again.
const candidate = "1rc"

func goOnFrom(w *workshop, name string) {
	var want struct {
		Params   string    `json:"params"`
		ABI      string    `json:"abi"` // of the environments' modules; "1rc" is the candidate of version 1, empty an older one
		EnvSteps uint64    `json:"env_steps"`
		Returns  []float64 `json:"returns"`
		GoesOn   struct {
			EnvSteps uint64            `json:"env_steps"`
			Params   map[string]string `json:"params"` // by kernels; none if the run continues inexactly
		} `json:"goes_on"`
		// NewRun has the parameters of a new run from it, by kernels; none where they equal Params. A learner that
		// normalises returns rescales the value's head whatever its learning rate is.
		NewRun map[string]string `json:"new_run"`
	}
	if err := json.Unmarshal([]byte(w.read(name+".json")), &want); err != nil {
		w.t.Fatal(err)
	}
	run := "runs/" + name + "/0001"
	var played struct {
		Returns []float64 `json:"returns"`
	}
	code, out := w.lastLine("eval", run, "--json", "--greedy", "--seed=1", "--episodes", fmt.Sprint(len(want.Returns)))
	if err := json.Unmarshal(out, &played); code != exitOK || err != nil || !slices.Equal(played.Returns, want.Returns) {
		w.t.Errorf("eval exits with %d and %s (%v), want returns %v", code, out, err, want.Returns)
	}
	end := w.train(withWrappers(w, run+"/pipeline.toml"), "--init-from", run, "--set", "run.stop.env_steps=4096", "--set", "run.evaluation.episodes=1",
		"--set", "train.mode=sync", "--set", "component.learner.learning_rate=1e-30") // an asynchronous run may stop late
	params := cmp.Or(want.NewRun[end.Kernels], want.Params)
	if end.EnvSteps < 4096 || end.EnvSteps >= want.EnvSteps+4096 || end.ParamsHash != params {
		w.t.Errorf("a new run from it ends with %+v, want parameters %s", end, params)
	}
	exact := want.ABI != "" && want.ABI != candidate && want.GoesOn.Params != nil
	resume := []string{"--resume", run, "--set", fmt.Sprintf("run.stop.env_steps=%d", want.GoesOn.EnvSteps), "--set", "run.evaluation.episodes=1"}
	if !exact {
		inexact := append([]string{"train", "--set", "run.stop.wall_time=1ns"}, resume...)
		says := []string{"not exactly: changed since the run began"}
		if want.GoesOn.Params != nil {
			says = append(says, "new episodes begin, because those that were saved do not fit")
		}
		w.fails(exitOK, inexact, says...)
	}
	end = w.train(resume...)
	if end.EnvSteps < want.GoesOn.EnvSteps || exact && end.ParamsHash != want.GoesOn.Params[end.Kernels] {
		w.t.Errorf("goes on to %+v, want %+v", end, want.GoesOn)
	}
}
