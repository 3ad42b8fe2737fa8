package builtin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Names of backends that a plugin computes.
const (
	backendCUDA = "cuda"
	backendAuto = "auto" // cuda where there is a device, else cpu
)

// elsewhere is the backend of a plugin: this program acts for it, on the processor, with the same bits, and leaves learning to the plugin.
type elsewhere struct {
	policy.Backend
	name, kernels string
}

// Name is the plugin's backend's.
func (e *elsewhere) Name() string { return e.name }

// Kernels is the plugin's backend's.
func (e *elsewhere) Kernels() string { return e.kernels }

// Compile leaves out learning.
func (e *elsewhere) Compile(n *policy.Network) (policy.Program, error) {
	p, err := e.Backend.Compile(n)
	if err != nil {
		return nil, err
	}
	return struct{ policy.Program }{p}, nil
}

func cudaElsewhere() policy.Backend { return &elsewhere{cpu.New(), backendCUDA, "cuda-fp32"} }

// auto returns the backend that "auto" selects on this machine.
func auto() policy.Backend {
	if device() == nil {
		return cudaElsewhere()
	}
	return cpu.New()
}

// errNoDeviceFile is of a machine that shows no GPU at all.
var errNoDeviceFile = errors.New("the machine shows no GPU")

// device returns the reason why backend = "auto" cannot use the GPU; nil if it can. Where the machine shows a GPU it asks the
// plugin, once in the life of this program.
var device = sync.OnceValue(func() error {
	if !hasDevice() {
		return errNoDeviceFile
	}
	program, err := programOf(policyPlugins()[backendCUDA], "")
	if err != nil {
		return err
	}
	return probe(program.Path, program.Args)
})

// hasDevice reports whether the machine shows a device that NVIDIA's driver has made, or a test names a driver.
func hasDevice() bool {
	if os.Getenv(cudaDriver) != "" {
		return true
	}
	for _, file := range []string{"/dev/nvidia0", "/dev/dxg"} {
		if _, err := os.Stat(file); err == nil {
			return true
		}
	}
	return false
}

// Environment variables of the plugin: where its program is, and the library of its driver.
const (
	cudaProgram = "RLHOST_CUDA"
	cudaDriver  = "RLHOST_CUDA_DRIVER"
)

// cudaName is the name of the CUDA program, next to this one or in PATH.
const cudaName = "rlhost-cuda"

// policyPlugin names the plugin that computes a policy; see graph.Parts.
func (e *Engines) policyPlugin(decode func(into any) error) string {
	t := policyDefaults()
	if decode(&t) != nil {
		return ""
	}
	if t.Plugin != nil {
		return *t.Plugin
	}
	if t.Backend != backendCUDA && t.Backend != backendAuto {
		return ""
	}
	if t.Backend == backendAuto && device() != nil {
		e.unused.Do(func() {
			if err := device(); !errors.Is(err, errNoDeviceFile) {
				e.log.Warn(`backend = "auto" is the processor: the GPU cannot be used`, "why", err)
			}
		})
		return ""
	}
	return backendCUDA
}

// policyPlugins returns the native plugins that compute policies.
func policyPlugins() map[string]graph.PluginTable {
	t := graph.DefaultPlugin()
	t.Path = cmp.Or(os.Getenv(cudaProgram), besideThis(cudaName))
	t.PassEnv = []string{cudaDriver, "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_CACHE_PATH", "CUDA_MPS_PIPE_DIRECTORY", "LD_LIBRARY_PATH"}
	return map[string]graph.PluginTable{backendCUDA: t}
}

// besideThis returns the path of a program in the folder of this one, or its name where there is none.
func besideThis(name string) string {
	self, err := os.Executable()
	if err != nil {
		return name
	}
	beside := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(beside); err != nil {
		return name
	}
	return beside
}

// probes keeps the plugins' reports of their devices, by the path of the program.
type probes struct {
	mu    sync.Mutex
	found map[string]error
}

// probeTime bounds a question for a device.
const probeTime = 30 * time.Second

// computes asks a plugin once whether it has a device; see graph.Parts.
func (p *probes) computes(t graph.PluginTable, dir string) error {
	program, err := programOf(t, dir)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if found, asked := p.found[program.Path]; asked {
		return found
	}
	if p.found == nil {
		p.found = map[string]error{}
	}
	err = probe(program.Path, t.Args)
	p.found[program.Path] = err
	return err
}

// probe runs a plugin's program with the argument probe, which prints a JSON object with "error" and "help" where it has no device.
func probe(path string, args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, append(args[:len(args):len(args)], "probe")...).Output()
	var said struct{ Error, Help string }
	if json.Unmarshal(bytes.TrimSpace(out), &said) != nil {
		return fmt.Errorf("%s probe: %w: %.200s", path, cmp.Or(err, errors.New("no answer")), out)
	}
	if said.Error != "" {
		return &table.Error{Reason: said.Error, Help: said.Help}
	}
	return nil
}
