// Package graphtest has the kinds of the standard presets without implementations, and environments that can only
// describe themselves, for tests of graphs and pipelines.
package graphtest

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// The kinds of the standard presets, with their ports and keys and no implementation.

type standard struct {
	component.Component
	manifest component.Manifest
	config   any
	check    func() error
	flow     func() component.Flow
	burnIn   *int  // of a learner
	whole    *bool // of a rollout
}

func (s *standard) Manifest() component.Manifest { return s.manifest }

func (s *standard) Configure(decode func(into any) error) error {
	if err := decode(s.config); err != nil || s.check == nil {
		return err
	}
	return s.check()
}

func (s *standard) Flow() component.Flow {
	if s.flow == nil {
		return component.Flow{}
	}
	return s.flow()
}

func (s *standard) WholeEpisodes() bool { return s.whole != nil && *s.whole }

func (s *standard) BurnInRows() int {
	if s.burnIn == nil {
		return 0
	}
	return *s.burnIn
}

// Ports are ports of names and payloads in turn.
func Ports(list ...string) []component.Port {
	var all []component.Port
	for i := 0; i < len(list); i += 2 {
		all = append(all, component.Port{Name: list[i], Payload: list[i+1]})
	}
	return all
}

func newRollout() component.Component {
	cfg := &struct {
		Env           string             `toml:"env"`
		Envs          int                `toml:"envs"`
		Splits        int                `toml:"splits"`
		Horizon       int                `toml:"horizon"`
		WholeEpisodes bool               `toml:"whole_episodes"`
		Blocks        int                `toml:"blocks"`
		MaxRestarts   int                `toml:"max_restarts"`
		RestartWindow time.Duration      `toml:"restart_window"`
		Layout        string             `toml:"layout"`
		Policies      map[string]string  `toml:"policies"`
		Opponents     map[string]float64 `toml:"opponents"`
	}{Envs: 32, Splits: 2, Horizon: 64, Blocks: 2, MaxRestarts: 5, Layout: "auto"}
	s := &standard{config: cfg, manifest: component.Manifest{
		Signals: Ports("obs_ready", "act_request", "trajectories", "trajectory", "episodes", "episode"),
		Slots:   Ports("on_actions", "actions"),
	}}
	s.check = func() error {
		var errs []error
		bad := func(e component.ConfigError) { errs = append(errs, &e) }
		if cfg.Env == "" {
			bad(component.ConfigError{Key: "env", Reason: "is missing"})
		}
		switch {
		case cfg.Envs < 1 || cfg.Envs > 65536:
			bad(component.ConfigError{Key: "envs", Reason: fmt.Sprintf("is %d, want 1 to 65536", cfg.Envs)})
		case cfg.Splits < 1:
			bad(component.ConfigError{Key: "splits", Reason: fmt.Sprintf("is %d, want 1 or more", cfg.Splits)})
		case cfg.Envs%cfg.Splits != 0:
			lower := cfg.Envs / cfg.Splits * cfg.Splits
			bad(component.ConfigError{Key: "envs", Code: "E020",
				Reason: fmt.Sprintf("= %d is not divisible by splits = %d", cfg.Envs, cfg.Splits),
				Help:   fmt.Sprintf("use %d or %d, or set splits = 1 to turn double-buffering off", lower, lower+cfg.Splits)})
		}
		if cfg.Horizon < 1 {
			bad(component.ConfigError{Key: "horizon", Reason: fmt.Sprintf("is %d, want 1 or more", cfg.Horizon)})
		}
		return errors.Join(errs...)
	}
	s.flow = func() component.Flow {
		return component.Flow{Splits: cfg.Splits, Blocks: cfg.Splits * cfg.Blocks,
			BlockRows: cfg.Horizon * cfg.Envs / cfg.Splits, Envs: cfg.Envs, Policies: cfg.Policies, Opponents: cfg.Opponents}
	}
	s.whole = &cfg.WholeEpisodes
	return s
}

func newInference() component.Component {
	cfg := &struct {
		Policy   string `toml:"policy"`
		MaxRows  int    `toml:"max_rows"`
		Versions int    `toml:"versions"`
	}{MaxRows: 1024, Versions: 8}
	return &standard{
		config: cfg, flow: func() component.Flow { return component.Flow{Versions: cfg.Versions} },
		manifest: component.Manifest{
			Signals: Ports("actions", "actions"), Slots: Ports("act", "act_request", "on_weights", "weights"),
		},
	}
}

func newBatcher() component.Component {
	cfg := &struct {
		DatasetRows  int    `toml:"dataset_rows"`
		MaxPolicyLag int    `toml:"max_policy_lag"`
		Policy       string `toml:"policy"`
	}{DatasetRows: 2048, MaxPolicyLag: 8}
	return &standard{
		config: cfg,
		manifest: component.Manifest{
			Signals: Ports("datasets", "dataset"),
			Slots:   Ports("on_trajectories", "trajectory", "on_weights", "weights"),
		},
		flow: func() component.Flow { return component.Flow{DatasetRows: cfg.DatasetRows} },
	}
}

func newLearner() component.Component {
	cfg := &struct {
		Policy             string  `toml:"policy"`
		LearningRate       float64 `toml:"learning_rate"`
		LRAnnealEnvSteps   uint64  `toml:"lr_anneal_env_steps"`
		AnnealClip         bool    `toml:"anneal_clip"`
		Gamma              float64 `toml:"gamma"`
		GAELambda          float64 `toml:"gae_lambda"`
		Discount           string  `toml:"discount"`
		Clip               float64 `toml:"clip"`
		Epochs             int     `toml:"epochs"`
		Minibatch          int     `toml:"minibatch"`
		BurnInRows         int     `toml:"burn_in_rows"`
		Entropy            float64 `toml:"entropy_coef"`
		ValueCoef          float64 `toml:"value_coef"`
		ValueClip          float64 `toml:"value_clip"`
		MaxGradNorm        float64 `toml:"max_grad_norm"`
		SeparateGradNorms  bool    `toml:"separate_grad_norms"`
		NormalizeAdvantage bool    `toml:"normalize_advantage"`
		NormalizeReturns   bool    `toml:"normalize_returns"`
		TargetKL           float64 `toml:"target_kl"`
		KLCoef             float64 `toml:"kl_coef"`
		BoundsLossCoef     float64 `toml:"bounds_loss_coef"`
		AdaptiveKL         float64 `toml:"adaptive_kl"`
		LearningRateMin    float64 `toml:"learning_rate_min"`
		LearningRateMax    float64 `toml:"learning_rate_max"`
		VTrace             bool    `toml:"vtrace"`
		RhoBar             float64 `toml:"rho_bar"`
		CBar               float64 `toml:"c_bar"`
		VTraceRecompute    string  `toml:"vtrace_recompute"`
		Shuffle            bool    `toml:"shuffle"`
		AdamBeta1          float64 `toml:"adam_beta1"`
		AdamBeta2          float64 `toml:"adam_beta2"`
		AdamEps            float64 `toml:"adam_eps"`
	}{LearningRate: 2.5e-4, LearningRateMin: 1e-5, LearningRateMax: 1e-2, RhoBar: 1, CBar: 1, Discount: "replace", VTraceRecompute: "dataset",
		Shuffle: true, AdamBeta1: 0.9, AdamBeta2: 0.999, AdamEps: 1e-5}
	return &standard{config: cfg, burnIn: &cfg.BurnInRows,
		manifest: component.Manifest{
			Signals: Ports("weights", "weights", "stats", "learner_stats"), Slots: Ports("on_dataset", "dataset"),
		},
	}
}

func newFrozen() component.Component {
	return &standard{
		config: &struct {
			Policy string `toml:"policy"`
		}{},
		manifest: component.Manifest{Signals: Ports("weights", "weights")},
	}
}

func newOpponents() component.Component {
	return &standard{
		config: &struct {
			Policy            string  `toml:"policy"`
			Keep              int     `toml:"keep"`
			EveryVersions     int     `toml:"every_versions"`
			DrawEveryVersions int     `toml:"draw_every_versions"`
			Newest            float64 `toml:"newest"`
		}{Keep: 10, EveryVersions: 20, DrawEveryVersions: 1},
		manifest: component.Manifest{Signals: Ports("weights", "weights"), Slots: Ports("on_weights", "weights", "on_trajectories", "trajectory")},
	}
}

func newRunner() component.Component {
	return &standard{
		config: &struct {
			Log   []string      `toml:"log"`
			Every time.Duration `toml:"every"`
		}{Log: []string{"console"}, Every: time.Second},
		manifest: component.Manifest{Slots: Ports("on_episodes", "episode", "on_stats", "learner_stats")},
	}
}

// node is one of a policy's network.
type node struct {
	Name       string              `toml:"name"`
	In         []string            `toml:"in"`
	Conv2D     *map[string]float64 `toml:"conv2d"`
	Dense      *map[string]float64 `toml:"dense"`
	Activation *map[string]string  `toml:"activation"`
}

// CheckPolicy checks a [policy.NAME] table; see graph.Parts.
func CheckPolicy(decode func(into any) error) error {
	_, _, _, err := readPolicy(decode)
	return err
}

// readPolicy returns the rows of the policy's chunks, how many earlier rows it reads, which is one less than the stacked frames, and the
// initial logarithm of its deviations.
func readPolicy(decode func(into any) error) (chunk, past int, logStd float64, err error) {
	cfg := struct {
		Backend string `toml:"backend"`
		Net     struct {
			Kind       string  `toml:"kind"`
			Hidden     []int   `toml:"hidden"`
			Activation string  `toml:"activation"`
			Nodes      *[]node `toml:"nodes"`
			Core       *struct {
				Kind string `toml:"kind"`
				Size int    `toml:"size"`
			} `toml:"core"`
			Chunk *int `toml:"chunk"`
		} `toml:"net"`
		Encoder map[string]struct {
			Stack int `toml:"stack"`
		} `toml:"encoder"`
		FrameStack   *int `toml:"frame_stack"`
		ShareTrunk   bool `toml:"share_trunk"`
		NormalizeObs bool `toml:"normalize_obs"`
		Action       struct {
			LogStd     string  `toml:"log_std"`
			LogStdInit float64 `toml:"log_std_init"`
			LogStdMin  float64 `toml:"log_std_min"`
			LogStdMax  float64 `toml:"log_std_max"`
			Squash     string  `toml:"squash"`
			Rescale    bool    `toml:"rescale"`
		} `toml:"action"`
	}{Backend: "cpu"}
	cfg.Net.Kind, cfg.Net.Hidden, cfg.Net.Activation = "mlp", []int{64, 64}, "tanh"
	cfg.Action.LogStd, cfg.Action.Squash, cfg.Action.LogStdMin, cfg.Action.LogStdMax = "parameter", "none", -5, 2
	if err := decode(&cfg); err != nil {
		return 0, 0, 0, err
	}
	if cfg.Backend != "cpu" {
		return 0, 0, 0, &component.ConfigError{Key: "backend", Reason: fmt.Sprintf("is %q", cfg.Backend), Help: "this program has: cpu"}
	}
	if cfg.Net.Chunk != nil {
		chunk = *cfg.Net.Chunk
	}
	frames := 1
	if cfg.FrameStack != nil {
		frames = *cfg.FrameStack
	}
	for _, e := range cfg.Encoder {
		frames = max(frames, e.Stack)
	}
	return chunk, frames - 1, cfg.Action.LogStdInit, nil
}

// Standard are the kinds of the presets, and two native plugins.
func Standard() *graph.Parts {
	return &graph.Parts{
		Kinds: map[string]func() component.Component{
			"rollout": newRollout, "inference": newInference, "batcher": newBatcher,
			"learner": newLearner, "runner": newRunner, "frozen": newFrozen, "opponents": newOpponents,
		},
		Plugin:     askStandard,
		Module:     loadStandard,
		EnvPlugins: map[string]graph.PluginTable{"gymnasium": graph.DefaultPlugin()},
		Builtins: []string{"acrobot@1", "bandit@1", "cartpole-positions@1", "cartpole@1", "connectfour@1", "minatar-breakout@1", "mountaincar@1",
			"mountaincarcontinuous@1", "pendulum-positions@1", "pendulum@1", "squash@1", "taxi@1"},
		CheckPolicy: CheckPolicy,
	}
}

// newShaper is a kind that only a native plugin makes.
func newShaper() component.Component {
	cfg := &struct {
		Scale float64 `toml:"scale"`
	}{1}
	return &standard{config: cfg, manifest: component.Manifest{
		Signals: Ports("trajectories", "trajectory"), Slots: Ports("on_trajectories", "trajectory"),
	}}
}

// newScale answers a request, newCoach asks one.
func newScale() component.Component {
	return &standard{config: &struct{}{}, manifest: component.Manifest{Requests: []hostabi.Request{
		{Name: "weigh", Args: []hostabi.RequestArg{{Name: "item", Type: hostabi.RequestText}, {Name: "unit", Type: hostabi.RequestText, Optional: true}}},
		{Name: "reset"}}}}
}

func newCoach() component.Component {
	return &standard{config: &struct{}{}, manifest: component.Manifest{Asks: []hostabi.Request{
		{Name: "weigh", Args: []hostabi.RequestArg{{Name: "item", Type: hostabi.RequestText}}}}}}
}

// looking is a shaper that looks at columns which trajectories have not.
type looking struct{ *standard }

func (looking) Looks() []hostabi.ManifestColumn {
	return []hostabi.ManifestColumn{{Name: "log_prop"}, {Name: "log_prob", DType: hostabi.F64}, {Name: "value", DType: hostabi.F32},
		{Name: "nothing", Flags: hostabi.ColumnOptional}, {Slot: 1, Name: "of another slot"}}
}

func (looking) Altered() []string { return nil }

// loadStandard is Parts.Module of modules that need not exist: ./tagged.wasm is a shaper whose slot wants another schema than its
// signal has, ./looks.wasm a shaper that reads columns that do not exist.
func loadStandard(m graph.ModuleTable, _ string) graph.Maker {
	return func() (component.Component, error) {
		made := newShaper().(*standard)
		switch m.Use {
		case "./shaper.wasm":
			return made, nil
		case "./tagged.wasm":
			made.manifest.Slots[0].Schema, made.manifest.Signals[0].Schema = 1, 2
			return made, nil
		case "./looks.wasm":
			return looking{made}, nil
		case "./greedy.wasm":
			return nil, &table.Error{Code: "E016", Place: m.Use, Reason: "imports rl_component.log, which is not granted",
				Help: `add "log" to the component's grants, or build the guest without it`}
		}
		return nil, &fs.PathError{Op: "open", Path: m.Use, Err: fs.ErrNotExist}
	}
}

// saying is the maker of a kind whose ports say their schemas, as a plugin does that is built with an SDK.
func saying(kind func() component.Component) graph.Maker {
	return func() (component.Component, error) {
		made := kind().(*standard)
		for _, ports := range [][]component.Port{made.manifest.Signals, made.manifest.Slots} {
			for i := range ports {
				ports[i].Schema = ports[i].Agreed()
			}
		}
		return struct{ component.Component }{made}, nil // a process cannot be asked for more
	}
}

// askStandard is Parts.Plugin of programs that need not exist.
func askStandard(p graph.PluginTable, _ string) (map[string]graph.Maker, error) {
	switch p.Path {
	case "":
		return map[string]graph.Maker{"inference": saying(newInference), "learner": saying(newLearner)}, nil
	case "./unsaid":
		return map[string]graph.Maker{"learner": graph.BuiltinMaker(newLearner)}, nil
	case "./shaper":
		return map[string]graph.Maker{"shaper": graph.BuiltinMaker(newShaper)}, nil
	case "./zoo":
		return map[string]graph.Maker{"lion": graph.BuiltinMaker(newShaper), "tiger": graph.BuiltinMaker(newShaper)}, nil
	case "./clinic":
		return map[string]graph.Maker{"coach": graph.BuiltinMaker(newCoach), "scale": graph.BuiltinMaker(newScale)}, nil
	case "./old":
		return nil, &table.Error{Code: "E063", Reason: "old speaks protocol 9, this rlhost 1", Help: "build it with this rlhost's SDK"}
	}
	return nil, &fs.PathError{Op: "open", Path: p.Path, Err: fs.ErrNotExist}
}
