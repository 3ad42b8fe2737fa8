package builtin

import (
	"cmp"
	"errors"
	"log/slog"
	"maps"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"

	"github.com/rlhost/rlhost/plugins/batcher"
	"github.com/rlhost/rlhost/plugins/channel"
	"github.com/rlhost/rlhost/plugins/inference"
	"github.com/rlhost/rlhost/plugins/learner"
	"github.com/rlhost/rlhost/plugins/objects"
	"github.com/rlhost/rlhost/plugins/opponents"
	rolloutplugin "github.com/rlhost/rlhost/plugins/rollout"
	"github.com/rlhost/rlhost/plugins/runner"
	"github.com/rlhost/rlhost/plugins/wasm/engine"
	"github.com/rlhost/rlhost/plugins/wrap"
)

// Options configure the parts. The zero value works.
type Options struct {
	Log    *slog.Logger  // nil discards messages
	Output runner.Output // how progress is reported
	// Compiler is the first argument at which this program's main calls wasm.ServeCompiler. Modules that are not in the
	// cache are then compiled by this program in a separate process, within limits; "" compiles them in this process.
	Compiler string
	// ShownLines is how many lines of each module that is not granted log are shown; see wasm.Options.
	ShownLines int
}

// New returns the table of everything that a pipeline may name, and the engines that run loaded plugins. The caller
// closes the engines once nothing made from the table is used any more.
func New(o Options) (*graph.Parts, *Engines) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	e := &Engines{log: o.Log, compiler: o.Compiler, shown: o.ShownLines}
	return &graph.Parts{
		Kinds:        Kinds(o.Output),
		Load:         e.load,
		File:         e.file,
		Spec:         e.spec,
		Vet:          e.vet,
		Plugin:       e.plugin,
		Module:       e.module,
		Alone:        func(module []byte) (graph.Alone, error) { return engine.NewAlone(module) },
		EnvPlugins:   envPlugins(""),
		EnvPluginsOf: envPlugins,
		Builtins:     Names(),
		Policy:       DecodePolicy,
		PolicyBy:     e.policyBy,
		CheckPolicy:  checkPolicy,
		PolicyUnread: unreadKeys(),
		CheckWrapper: wrap.Check,
		Presets:      graph.DefaultPresets(),

		PolicyPlugin:  e.policyPlugin,
		PolicyPlugins: policyPlugins(),
		Computes:      e.probes.computes,
		Waits:         e.waits,
		RunText:       runText,
	}, e
}

// runText is graph.Parts.RunText.
func runText(dir, path, from string) (text string, err error) {
	run, err := runs.Open(dir, path)
	if errors.Is(err, runs.ErrNotFound) {
		run, err = runs.Open(dir, from)
	}
	if err != nil {
		return "", err
	}
	source, err := run.Pipeline()
	return string(source), errors.Join(err, run.Close())
}

// Names returns the environments that are built in, such as cartpole@1, sorted.
func Names() []string { return slices.Sorted(maps.Keys(plugins.Builtins())) }

// Kinds returns the components, by kind.
func Kinds(o runner.Output) map[string]func() component.Component {
	o.Python = cmp.Or(o.Python, pythonFor(""))
	return map[string]func() component.Component{
		"rollout":   rolloutplugin.New,
		"inference": inference.New,
		"random":    inference.NewRandom,
		"batcher":   batcher.New,
		"learner":   learner.New,
		"runner":    runner.New(o),
		"opponents": opponents.New,
		"frozen":    opponents.NewFrozen,
		"objects":   func() component.Component { return objects.New() },
		"channel":   channel.New,
	}
}

// backends returns the backends of policies.
func backends() map[string]func() policy.Backend {
	return map[string]func() policy.Backend{"cpu": func() policy.Backend { return cpu.New() }, backendCUDA: cudaElsewhere, backendAuto: auto}
}

// defaultBackend is the one of a policy that names none.
const defaultBackend = "cpu"

// Kernels names the kernels of the default backend on this machine.
func Kernels() string { return backends()[defaultBackend]().Kernels() }
