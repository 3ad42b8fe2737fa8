package builtin

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
)

// Codes of tables that no environment of theirs can have a policy by; rlhost explain has a page for each.
const (
	codeNetwork = "E047" // layers
	codeInput   = "E048" // inputs, and their encoders
	codeSize    = "E098" // parameters
)

// PolicyTable is a [policy.NAME] table.
type PolicyTable struct {
	// Plugin computes the policy; empty: Backend does. Args are the program's.
	Plugin *string        `toml:"plugin" doc:"Plugin whose program computes the policy: a network of your own." range:"a [plugin] table" default:""`
	Args   map[string]any `toml:"args,omitempty" doc:"Arguments of that program's policy."`
	// Acts is by what such a policy acts: its program, or the processor by the program's description of it.
	Acts string `toml:"acts" doc:"Computes the actions of that program's policy: the program, or the host by its description." range:"plugin, host"`

	Backend      string `toml:"backend" doc:"Computes the policy." range:"auto, cpu, cuda"`
	Net          Net    `toml:"net"`
	ShareTrunk   *bool  `toml:"share_trunk" doc:"Policy and value share their hidden layers." default:"true with pictures or a recurrent layer"`
	NormalizeObs bool   `toml:"normalize_obs" doc:"Normalises observations by running statistics."`
	Action       Action `toml:"action"`
	// Inputs are further inputs after the observations: last_action, executed_action, last_reward.
	Inputs []string `toml:"inputs" doc:"Further inputs after the observations." range:"last_action, executed_action, last_reward"`
	// LastReward is how the last reward enters: running, plain, raw; nil is the default for NormalizeObs, where it enters at all.
	LastReward *string `toml:"last_reward" doc:"Form of the input last_reward." range:"running, plain, raw" default:"running with normalize_obs, else plain"`
	// CriticInputs are patterns of paths of the inputs that the value alone reads.
	CriticInputs []string                `toml:"critic_inputs" doc:"Patterns of inputs that only the value reads."`
	Encoder      map[string]EncoderTable `toml:"encoder" name:"PATTERN"` // by pattern of paths
	// FrameStack is how many frames of each observation enter whose encoder does not say; nil is one.
	FrameStack *int         `toml:"frame_stack" doc:"Newest frames of an observation that enter together." range:"1 or more" default:"1"`
	Limits     PolicyLimits `toml:"limits"`

	images string // the kind that net.nodes were written out from, if the file has one
}

// PolicyLimits is its key limits: the resources of a network.
type PolicyLimits struct {
	Parameters int `toml:"parameters" doc:"Most parameters of the network." range:"1 to 1,000,000,000"`
}

// Bounds of limits.parameters. Backends find parameters by 32 bits.
const (
	defaultParameters = 100_000_000
	maxParameters     = 1_000_000_000
)

// Action is its key action: how a policy draws Box actions.
type Action struct {
	LogStd     policy.LogStd `toml:"log_std" doc:"Source of a Box action's standard deviations: learned numbers, an output of the network, or constants." range:"parameter, network, fixed"`
	LogStdInit float64       `toml:"log_std_init" doc:"First logarithm of the standard deviations; 0 is a deviation of 1." range:"log_std_min to log_std_max"`
	LogStdMin  float64       `toml:"log_std_min" doc:"Smallest logarithm of the standard deviations."`
	LogStdMax  float64       `toml:"log_std_max" doc:"Largest logarithm of the standard deviations."`
	Squash     string        `toml:"squash" doc:"How Box actions stay in their bounds: clipped, or squashed by tanh." range:"none, tanh"`
	Rescale    bool          `toml:"rescale" doc:"The bounds are -1 and 1 for the policy."`
}

// Net is its key net: the layers between the observation and the heads. Missing keys get the kind's defaults.
type Net struct {
	Kind       string         `toml:"kind" doc:"Layers between the observations and the heads." range:"mlp, nature_cnn, impala, nodes" default:"\"mlp\""`
	Hidden     []int          `toml:"hidden" doc:"Widths of the hidden layers." range:"1 or more each" default:"the kind's"`
	Activation string         `toml:"activation" doc:"Activation of the hidden layers." range:"relu, tanh, elu, gelu, silu" default:"the kind's"`
	Nodes      *[]policy.Node `toml:"nodes" doc:"Layers one by one, where kind is nodes." default:""`
	InitGain   *float64       `toml:"init_gain" doc:"Gain of the orthogonal initialisation of the hidden layers." default:"√2"`
	Core       *Core          `toml:"core"` // after the hidden layers; not for nodes
	Chunk      *int           `toml:"chunk" doc:"Rows that a recurrent network learns from together." range:"1 or more" unit:"rows" default:"16"`
}

// Core is its key core: a layer that keeps a state.
type Core struct {
	Kind policy.CoreKind `toml:"kind" doc:"Recurrent layer after the hidden ones." range:"gru, lstm"`
	Size *int            `toml:"size" doc:"Width of the recurrent layer." range:"1 or more" default:"128"`
}

// Values of acts.
const (
	actsPlugin = "plugin"
	actsHost   = "host"
)

// Defaults of a recurrent layer.
const (
	defaultChunk = 16  // rows
	defaultCore  = 128 // elements
)

func policyDefaults() PolicyTable {
	action := Action{LogStd: policy.ParameterStd, LogStdMin: head.DefaultLogStd.Min, LogStdMax: head.DefaultLogStd.Max, Squash: "none"}
	return PolicyTable{Acts: actsPlugin, Backend: defaultBackend, Action: action, Limits: PolicyLimits{Parameters: defaultParameters}}
}

// DecodePolicy makes the policy of a table for an environment.
func DecodePolicy(decode func(into any) error, env *hostabi.EnvSpec) (component.Policy, error) {
	return decodePolicy(decode, env, func(name string) policy.Backend { return backends()[name]() })
}

// DecodePolicyFor is DecodePolicy for a program that computes policies by one backend, whatever their tables name.
func DecodePolicyFor(b policy.Backend) func(decode func(into any) error, env *hostabi.EnvSpec) (component.Policy, error) {
	return func(decode func(into any) error, env *hostabi.EnvSpec) (component.Policy, error) {
		return decodePolicy(decode, env, func(string) policy.Backend { return b })
	}
}

func decodePolicy(decode func(into any) error, env *hostabi.EnvSpec, backend func(name string) policy.Backend) (component.Policy, error) {
	t, err := readPolicy(decode)
	if err != nil {
		return nil, err
	}
	actions, err := t.Action.of(env)
	if err != nil {
		return nil, err
	}
	inputs, encoders, err := t.inputs(env)
	if err != nil {
		return nil, err
	}
	network, err := t.network(env, inputs, encoders, actions)
	if err != nil {
		return nil, err
	}
	if t.Net.Chunk != nil {
		network.Chunk = *t.Net.Chunk
	}
	d := &policy.Definition{Backend: backend(t.Backend), Network: network}
	if err := d.Network.Validate(); err != nil {
		return nil, &component.ConfigError{Code: codeNetwork, Key: "net", Reason: "does not suit the environment: " + err.Error(), Help: t.helpForShapes()}
	}
	if err := t.Limits.check(d.Network.Size()); err != nil {
		return nil, err
	}
	if _, err := d.Backend.Compile(&d.Network); err != nil {
		return nil, &component.ConfigError{Code: codeNetwork, Key: "net", Reason: fmt.Sprintf("cannot be computed by backend %q: %v", d.Backend.Name(), err),
			Help: "change the node that it names, or take another backend"}
	}
	return d, nil
}

// check returns why a network is too large, before anything of it is made.
func (l *PolicyLimits) check(s policy.Size) error {
	if s.Params <= l.Parameters {
		return nil
	}
	help := fmt.Sprintf("make what %s reads or computes narrower", s.Largest)
	if s.Params <= maxParameters {
		help += fmt.Sprintf(", or raise the limit: limits = { parameters = %d }", s.Params)
	}
	return &component.ConfigError{Code: codeSize, Key: "net", Help: help,
		Reason: fmt.Sprintf("has %d parameters, %d of them in %s: more than limits.parameters, %d", s.Params, s.Most, s.Largest, l.Parameters)}
}

// helpForShapes returns the remedy for a network whose layers do not take the environment's observations.
func (t *PolicyTable) helpForShapes() string {
	if t.images == "" {
		return "change the node that it names"
	}
	return fmt.Sprintf(`%s is for pictures that its convolutions fit in; use kind = "mlp", which suits all observations`, t.images)
}

// checkPolicy checks a table without an environment.
func checkPolicy(decode func(into any) error) error {
	_, err := readPolicy(decode)
	return err
}

func readPolicy(decode func(into any) error) (PolicyTable, error) {
	t := policyDefaults()
	if err := decode(&t); err != nil {
		return t, err
	}
	var errs []error
	bad := func(key, reason, help string) {
		errs = append(errs, &component.ConfigError{Key: key, Reason: reason, Help: help})
	}
	if backends()[t.Backend] == nil {
		bad("backend", fmt.Sprintf("is %q", t.Backend), "this program has: "+strings.Join(slices.Sorted(maps.Keys(backends())), ", "))
	}
	switch {
	case t.Acts != actsPlugin && t.Acts != actsHost:
		bad("acts", fmt.Sprintf("is %q", t.Acts), "use plugin or host")
	case t.Acts == actsHost && t.Plugin == nil:
		bad("acts", "has no effect without plugin", "leave it out: the host acts by its own networks")
	}
	t.expand(bad)
	t.expandLastReward(bad)
	t.Action.check(bad)
	if n := t.Limits.Parameters; n < 1 || n > maxParameters {
		bad("limits.parameters", fmt.Sprintf("is %d", n), fmt.Sprintf("use 1 to %d", maxParameters))
	}
	t.checkEncoders(bad)
	return t, errors.Join(errs...)
}

// check reports settings that no Box can have.
func (a *Action) check(bad func(key, reason, help string)) {
	if !slices.Contains([]policy.LogStd{policy.ParameterStd, policy.NetworkStd, policy.FixedStd}, a.LogStd) {
		bad("action.log_std", fmt.Sprintf("is %q", a.LogStd), "use parameter, network or fixed")
	}
	if s := a.Squash; s != "none" && s != string(head.Tanh) {
		bad("action.squash", fmt.Sprintf("is %q", s), "use none or tanh")
	}
	bounds, widest := head.Range{Min: a.LogStdMin, Max: a.LogStdMax}, head.WidestLogStd
	switch x := a.LogStdInit; {
	case !bounds.Within(widest):
		bad("action.log_std_min", fmt.Sprintf("is %v and log_std_max %v", bounds.Min, bounds.Max),
			fmt.Sprintf("use a smaller number than log_std_max, both from %g to %g", widest.Min, widest.Max))
	case x != 0 && a.LogStd == policy.NetworkStd:
		bad("action.log_std_init", "has no effect with log_std = \"network\"", "leave it out")
	case !(x >= bounds.Min && x <= bounds.Max) && a.LogStd != policy.NetworkStd:
		bad("action.log_std_init", fmt.Sprintf("is %v, beyond log_std_min = %g or log_std_max = %g, where nothing is learned", x, bounds.Min, bounds.Max),
			fmt.Sprintf("0 is a standard deviation of 1; use a number between them, or move them within %g to %g", widest.Min, widest.Max))
	}
}

// of returns the distributions of an environment's actions.
func (a *Action) of(env *hostabi.EnvSpec) ([]policy.Dist, error) {
	o := policy.ActionOptions{Rescale: a.Rescale, LogStd: head.Range{Min: a.LogStdMin, Max: a.LogStdMax}}
	if o.LogStd == head.DefaultLogStd {
		o.LogStd = head.Range{} // descriptions omit defaults
	}
	if a.Squash == string(head.Tanh) {
		o.Squash = head.Tanh
	}
	dists, err := policy.DistsOf(env, o)
	if !errors.Is(err, policy.ErrUnbounded) {
		return dists, err
	}
	key, off := "action.rescale", "false" // a preset may have set it
	if o.Squash != head.Free {
		key, off = "action.squash", `"none"`
	}
	return nil, &component.ConfigError{Key: key, Reason: err.Error(),
		Help: fmt.Sprintf("set it to %s, or give the environment's action finite bounds", off)}
}
