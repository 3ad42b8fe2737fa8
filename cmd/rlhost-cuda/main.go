// Rlhost-cuda is a native plugin of rlhost that computes policies on NVIDIA's GPUs: inference and learners of policies with
// backend = "cuda" run in it. It needs NVIDIA's driver where it runs, and no C compiler where it is built.
//
//	rlhost-cuda probe    prints the devices found as one line of JSON
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/cuda"
	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/inference"
	"github.com/rlhost/rlhost/plugins/learner"
	"github.com/rlhost/rlhost/sdk/process"
)

// exitLost is the status of a process whose device has ended its context: the host starts another one.
const exitLost = 3

func main() {
	leaveProcessors()
	b := cuda.New(options())
	if len(os.Args) == 2 && os.Args[1] == "probe" {
		os.Exit(probe(b))
	}
	process.Serve(process.Plugin{
		Kinds: map[string]func() component.Component{
			"inference": func() component.Component { return &acting{} },
			"learner":   func() component.Component { return &learning{backend: b} },
		},
		Docs: map[string]string{
			"inference": "acts on a GPU",
			"learner":   "PPO on a GPU",
		},
		Policy: builtin.DecodePolicyFor(b),
	})
}

// threads is how many threads of this process run Go at once at most. An actor or a learner computes on one goroutine, two ends of
// its rings may sleep on a thread's share each, and one is left to answer the host and to collect garbage. On a machine with many
// processors more would only wake up, look for work and sleep again, at the cost of the rollouts that the processors are for.
const threads = 4

// leaveProcessors leaves the others to the rollouts.
func leaveProcessors() { runtime.GOMAXPROCS(min(runtime.GOMAXPROCS(0), threads)) }

// acting is rlhost's inference.
type acting struct{ inference.Inference }

// Start is the component's.
func (a *acting) Start(h *component.Host) error { return start(h, a.Inference.Start) }

// learning is rlhost's learner, whose device reads blocks where they lie.
type learning struct {
	learner.Learner
	backend *cuda.Backend
	unwatch func()
}

// Start is the component's.
func (l *learning) Start(h *component.Host) error {
	l.unwatch = l.backend.Watch(h.Arenas, h.Log, h.Stats.Counter("cuda/staged_bytes"))
	err := start(h, l.Learner.Start)
	if err != nil {
		l.unwatch()
	}
	return err
}

// Stop is the component's.
func (l *learning) Stop() error {
	defer l.unwatch()
	return l.Learner.Stop()
}

// start starts a component whose process ends with the device's context, which no later call could use: the host starts a successor
// with the newest state, as after any death.
func start(h *component.Host, start func(h *component.Host) error) error {
	failed := h.Failed
	h.Failed = func(err error) bool {
		if driver.IsSticky(err) {
			fmt.Fprintf(os.Stderr, "the device is lost: %v\n", err)
			os.Exit(exitLost)
		}
		return failed != nil && failed(err)
	}
	return explained(start(h))
}

// explained adds the remedy for a missing device.
func explained(err error) error {
	if help := helpFor(err); help != "" {
		return fmt.Errorf("%w: %s", err, help)
	}
	return err
}

// helpFor returns the remedy for an error, if it is known.
func helpFor(err error) string {
	switch {
	case errors.Is(err, driver.ErrNoDriver):
		return `install NVIDIA's driver, 525 or newer, or use backend = "cpu", or "auto" for the processor where there is no GPU`
	case errors.Is(err, driver.ErrOldDriver):
		return `install a driver with CUDA 12.0 or newer (525), or use backend = "cpu"`
	case errors.Is(err, driver.ErrNoDevice):
		return `look at nvidia-smi and at CUDA_VISIBLE_DEVICES, or use backend = "cpu", or "auto" for the processor where there is no GPU`
	case errors.Is(err, kernels.ErrOldDevice):
		return `have CUDA_VISIBLE_DEVICES name a newer GPU (Ampere or later), or use backend = "cpu", or "auto" for the processor where there is no such GPU`
	case errors.Is(err, driver.ErrNoMemory):
		return "close other programs that use the GPU, have CUDA_VISIBLE_DEVICES name another one, or take fewer envs, a shorter horizon or smaller minibatches"
	}
	return ""
}
