package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// withCUDA builds the plugin, over the driver in Go, next to the program. With RLHOST_CUDA_DRIVER, which names a library, it takes the
// plugin next to the tests' program: a machine with a GPU needs no compiler.
func (w *workshop) withCUDA() {
	w.t.Helper()
	if os.Getenv("RLHOST_CUDA_DRIVER") != "" {
		self, err := os.Executable()
		if err != nil {
			w.t.Fatal(err)
		}
		w.copy("rlhost-cuda", filepath.Join(filepath.Dir(self), "rlhost-cuda"))
		return
	}
	w.build("rlhost-cuda", "go", "-tags", "fakecuda", "./cmd/rlhost-cuda")
	w.env = append(w.env, "RLHOST_CUDA_DRIVER=fake")
}

// onCUDA is a training with the plugin declared; the interpreter is slow, so it has a small network and few optimiser steps.
func onCUDA(mode string) string {
	return strings.NewReplacer(`"sync"`, `"`+mode+`"`, "env_steps = 20480", "env_steps = 4096").Replace(plain) + `
[policy.main]
net = { hidden = [8] }
[component.rollout]
envs = 256
horizon = 8
[component.learner]
minibatch = 1024
lr_anneal_env_steps = 0
[swap]
trial_envs = 0
probation = "0s"
[plugin.gpu]
path = "./rlhost-cuda"
pass_env = ["RLHOST_CUDA_DRIVER"]
max_restarts = 100
`
}

func TestCUDA_NamesTheMissingPart(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("pipeline.toml", plain)
	cuda := []string{"pipeline.toml", "--set", "policy.main.backend=cuda"}
	train, validate := append([]string{"train"}, cuda...), append([]string{"validate"}, cuda...)
	w.env = []string{"PATH=" + w.dir}
	w.fails(exitPlugin, train, "error[E039]", "rlhost-cuda", "make build")
	w.env = nil
	w.withCUDA()
	for env, text := range map[string]string{"RLHOST_CUDA_DRIVER=/nowhere.so": "no CUDA driver: /nowhere.so", "CUDA_VISIBLE_DEVICES=": "no CUDA device",
		"RLHOST_CUDA_DRIVER=fake?version=11080": "CUDA 11.8", "RLHOST_CUDA_DRIVER=fake?capability=75": "capability 7.5, 8.0 or newer is needed"} {
		part := w.of(t)
		part.env = append(slices.Clone(w.env), env)
		part.fails(exitPlugin, train, "error[E039]", `policy "main" cannot be computed on this machine`, text, "help: ", `backend = "cpu"`)
		part.fails(exitOK, validate, "warning[W105]", text, "pipeline.toml: ok")
		part.fails(exitOK, []string{"validate", "pipeline.toml", "--set", "policy.main.backend=auto"}, `backend = "auto" is the processor`, text, "pipeline.toml: ok")
		if _, err := os.Stat(w.path("runs")); err == nil {
			t.Error("a training that cannot be leaves a folder")
		}
	}
	little := w.of(t)
	little.env = append(slices.Clone(w.env), "RLHOST_CUDA_DRIVER=fake?memory=4096")
	little.fails(exitFailed, train, "error[E067]", "bytes of device memory, of which", "close other programs that use the GPU")
	w.fails(exitConfig, []string{"validate", "pipeline.toml", "--set", "policy.main.backend=cud"}, `is "cud"`, "auto, cpu, cuda")
}

// A training without a GPU asks the plugin twice, for its kinds and for its device, and loads nothing: it says so at once.
func TestCUDA_AsksAgainForAMissingDevice(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.withCUDA()
	w.write("pipeline.toml", strings.Replace(plain, "cartpole@1", "./nowhere.wasm", 1))
	w.write("asked", "#!/bin/sh\necho \"asked $*\" >>"+w.path("log")+"\nexec "+w.path("rlhost-cuda")+" \"$@\"\n")
	if err := os.Chmod(w.path("asked"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "RLHOST_CUDA="+w.path("asked"), "CUDA_VISIBLE_DEVICES=")
	w.fails(exitPlugin, []string{"train", "pipeline.toml", "--set", "policy.main.backend=cuda"}, "error[E039]", "no CUDA device")
	if got := w.read("log"); got != "asked \nasked probe\n" {
		t.Errorf("the plugin was started with\n%s", got)
	}
}

// Inference and learner are two processes on one device. If one loses it, the process ends, and its successor continues from the
// newest state; the other stays.
func TestCUDA_TwoProcessesOnOneDevice(t *testing.T) {
	slow(t)
	w := newWorkshop(t)
	w.withCUDA()
	w.write("live.toml", strings.NewReplacer("env_steps = 4096", "env_steps = 2_000_000_000", "[plugin.gpu]", `[plugin.lost]
path = "./lost"
max_restarts = 100
[plugin.gpu]`).Replace(onCUDA("async")))
	w.write("lost", "#!/bin/sh\nRLHOST_CUDA_DRIVER='fake?launches=200' exec "+w.path("rlhost-cuda")+"\n")
	if err := os.Chmod(w.path("lost"), 0o755); err != nil {
		t.Fatal(err)
	}
	j := w.host("live.toml", "--set", "component.inference.plugin=gpu", "--set", "component.learner.plugin=lost")
	var first []int
	j.within("two processes of the plugin", func() bool { // one that ends and its successor may both be there for a moment
		first = w.onDevice(j)
		return len(first) == 2
	})
	j.within("a successor", func() bool {
		now := w.onDevice(j)
		return len(now) == 2 && slices.Contains(now, first[0]) != slices.Contains(now, first[1])
	})
	j.goesOn()
	j.says("the device is lost")
	j.stop()
}

// onDevice lists the processes of the plugin that a run has.
func (w *workshop) onDevice(j *subject) (pids []int) {
	for _, pid := range j.processes() {
		if program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && program == w.path("rlhost-cuda") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// With backend = "cuda" alone, inference and learner are the plugin's.
func TestCUDA_TrainsWithOneKey(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.withCUDA()
	w.write("pipeline.toml", onCUDA("sync"))
	end := w.train("pipeline.toml", "--set", "policy.main.backend=cuda")
	if end.Kernels != "cuda-fp32" || end.EnvSteps < 4096 {
		t.Errorf("%+v", end)
	}
	w.env = nil
	if end := w.train("pipeline.toml", "--set", "policy.main.backend=auto"); end.Kernels == "cuda-fp32" {
		t.Errorf("without a GPU auto is %+v", end)
	}
}

// A GPU acts as the processor does: a synchronous run has its hash, wherever its inference is.
func TestCUDA_InferenceLeavesTheHashAsItIs(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.withCUDA()
	w.write("pipeline.toml", onCUDA("sync"))
	here, there := w.train("pipeline.toml"), w.train("pipeline.toml", "--set", "component.inference.plugin=gpu")
	if here.ParamsHash != there.ParamsHash || here.EnvSteps != there.EnvSteps {
		t.Errorf("with inference on a GPU %+v, without %+v", there, here)
	}
	all := []string{"pipeline.toml", "--set", "policy.main.backend=cuda"}
	if first, second := w.train(all...), w.train(all...); first.ParamsHash != second.ParamsHash || first.ParamsHash == here.ParamsHash {
		t.Errorf("all on a GPU %+v, again %+v, on the processor %+v", first, second, here)
	}
}

// liveOnCUDA begins the training of live.toml, which only a command ends.
func (w *workshop) liveOnCUDA(args ...string) *subject {
	w.t.Helper()
	w.write("live.toml", strings.Replace(onCUDA("async"), "env_steps = 4096", "env_steps = 2_000_000_000", 1))
	return w.host(append([]string{"live.toml"}, args...)...)
}

// Inference and learner move to the GPU and back during the run, back by a rollback at times and with more rollouts and fewer, and no env
// step is lost.
func TestCUDA_SwapsWithTheProcessor(t *testing.T) {
	slow(t)
	w := newWorkshop(t)
	w.withCUDA()
	j := w.liveOnCUDA()
	for i := range 50 {
		component := []string{"learner", "inference"}[i/2%2]
		switch {
		case i%2 == 0:
			j.reload("live.toml", "component."+component+".plugin=gpu")
		case i%4 == 1:
			j.do(control.VerbRollback, control.RollbackRequest{Component: component}, new(control.SwapReply))
		default:
			j.reload("live.toml")
		}
		if i%2 == 0 {
			j.do(control.VerbScale, control.ScaleRequest{Components: map[string]int{"rollout": 1 + i/2%2}}, new(control.ReloadReply))
		}
		s := j.status()
		if host := instance(&s, component).Host; (host == "local") != (i%2 == 1) {
			t.Errorf("%s runs in %s after swap %d", component, host, i)
		}
		j.goesOn()
		j.addsUp()
	}
	j.stop()
}

// The key of the policy alone moves both of its components during the run, and both come back with it.
func TestCUDA_TheBackendChangesDuringARun(t *testing.T) {
	slow(t)
	w := newWorkshop(t)
	w.withCUDA()
	j := w.liveOnCUDA()
	for _, backend := range []string{"cuda", "cpu"} {
		j.reload("live.toml", "policy.main.backend="+backend)
		s := j.status()
		for _, name := range []string{"inference", "learner"} {
			if host := instance(&s, name).Host; (host == "local") != (backend == "cpu") {
				t.Errorf("with backend %q %s runs in %s", backend, name, host)
			}
		}
		j.goesOn()
		j.addsUp()
	}
	j.stop()
}

// A learner that is kept in this program has no kernels of a GPU, which is said before anything starts.
func TestCUDA_ABuiltInLearnerIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.withCUDA()
	w.write("pipeline.toml", onCUDA("sync"))
	w.fails(exitConfig, []string{"train", "pipeline.toml", "--set", "policy.main.backend=cuda", "--set", "component.learner.runtime=builtin"}, "error[E005]", "learner", "help: ")
	if _, err := os.Stat(w.path("runs")); err == nil {
		t.Error("a training that cannot be leaves a folder")
	}
}

// slow is for a test that takes long over the interpreter: make test-cuda runs it, with RLHOST_LONG.
func slow(t *testing.T) {
	t.Helper()
	if os.Getenv("RLHOST_LONG") == "" {
		t.Skip("takes long over the interpreter: make test-cuda runs it")
	}
	t.Parallel()
}

// A killed process of the plugin has a successor, which continues from its newest state. Inference and learner are killed by
// turns, and every env step is accounted for.
func TestCUDA_KillsOfThePlugin(t *testing.T) {
	slow(t)
	w := newWorkshop(t)
	w.withCUDA()
	j := w.liveOnCUDA("--set", "component.inference.plugin=gpu", "--set", "component.learner.plugin=gpu")
	of := w.onDevice(j)
	if len(of) != 2 {
		t.Fatalf("processes %v of the plugin, want two", of)
	}
	for i := range 20 {
		victim, other := of[i%2], of[1-i%2]
		if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		j.within("a successor", func() bool {
			now := w.onDevice(j)
			if len(now) != 2 || slices.Contains(now, victim) || !slices.Contains(now, other) {
				return false
			}
			of[i%2] = now[1-slices.Index(now, other)]
			return true
		})
		j.goesOn()
		j.addsUp("component.learner")
	}
	j.stop()
}

func TestCUDA_LearnsCartPole(t *testing.T) {
	slow(t)
	w := newWorkshop(t)
	w.withCUDA()
	w.write("pipeline.toml", strings.NewReplacer("env_steps = 4096", "return = 475, env_steps = 500_000", "[8]", "[16]", "envs = 256", "envs = 64",
		"horizon = 8", "horizon = 32", "minibatch = 1024", "minibatch = 256\nepochs = 4\nlearning_rate = 4e-3").Replace(onCUDA("sync")))
	end := w.train("pipeline.toml", "--set", "policy.main.backend=cuda")
	t.Logf("%d env steps", end.EnvSteps)
	if end.Reason != "return" || end.EvalReturn < 475 {
		t.Errorf("%+v", end)
	}
}

// A run whose learner continues on another device does not continue exactly, whatever its policy's backend is called, and says so.
func TestCUDA_AResumeNamesTheLearnersBackend(t *testing.T) {
	slow(t)
	w := newWorkshop(t)
	w.withCUDA()
	w.write("pipeline.toml", onCUDA("sync"))
	if end := w.train("pipeline.toml", "--set", "component.learner.plugin=gpu"); end.Kernels != "plugin gpu" {
		t.Errorf("kernels are %q", end.Kernels)
	}
	w.train("pipeline.toml")
	w.fails(exitOK, []string{"train", "--resume", "latest", "--set", "run.stop.env_steps=8192", "--set", "component.learner.plugin=gpu", "--set", "run.evaluation.episodes=1"},
		"not exactly: it began with kernels", "goes on with plugin gpu")
}

// A run continues exactly on a device like the one where it began. If it moves to the processor or from it, it says so: whether by its
// own key, or because backend = "auto", which its pipeline keeps, finds another device.
func TestCUDA_AResumeIsExactOnTheSameKernels(t *testing.T) {
	slow(t)
	w := newWorkshop(t)
	w.withCUDA()
	w.write("pipeline.toml", onCUDA("sync"))
	run := func(backend, steps string) []string {
		return []string{"--set", "policy.main.backend=" + backend, "--set", "run.stop.env_steps=" + steps, "--set", "run.evaluation.episodes=1"}
	}
	resume := func(args ...string) []string { return append([]string{"--resume", "latest"}, args...) }
	whole, part := w.train(append(run("cuda", "4096"), "pipeline.toml")...), w.train(append(run("cuda", "2048"), "pipeline.toml")...)
	again := w.train(resume("--set", "run.stop.env_steps=4096")...)
	if part.ParamsHash == whole.ParamsHash || again.ParamsHash != whole.ParamsHash || !strings.Contains(w.read("runs/cartpole/0002/run.json"), `"exact": true`) {
		t.Errorf("resumed %+v, the whole run %+v", again, whole)
	}
	here := builtin.Kernels()
	w.fails(exitOK, append([]string{"train"}, resume(run("cpu", "6144")...)...), "not exactly: it began with kernels cuda-fp32 and goes on with "+here)
	w.fails(exitOK, append([]string{"train"}, resume(run("cuda", "8192")...)...), "not exactly: it began with kernels "+here+" and goes on with cuda-fp32")

	end := w.train(append(run("auto", "2048"), "pipeline.toml")...)
	if kept := w.read("runs/cartpole/0003/pipeline.toml"); end.Kernels != "cuda-fp32" || !strings.Contains(kept, `backend = "auto"`) {
		t.Errorf("auto is %s, and is kept as\n%s", end.Kernels, kept)
	}
	w.env = append(w.env, "CUDA_VISIBLE_DEVICES=")
	w.fails(exitOK, append([]string{"train"}, resume("--set", "run.stop.env_steps=4096")...), "not exactly: it began with kernels cuda-fp32 and goes on with "+here)
}
