package graph

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/place"
	"github.com/rlhost/rlhost/hostabi"
)

// Graph is a checked pipeline. It is immutable after Parse.
type Graph struct {
	File        string // name of the file that it was read from
	Dir         string // folder that paths of plugins are relative to
	Synchronous bool   // one loop, zero lag, bit-reproducible
	Run         RunTable
	Swap        Swap
	Cluster     Cluster
	Envs        []Env
	Policies    []Policy
	Plugins     []*Plugin
	Components  []Component
	Groups      []Group
	Wires       []Wire
	Warnings    Problems // of the file that it was read from

	origin origin
	sweep  *node // the table [sweep], which Sweep reads; nil without one
}

// RunTable is the [run] table.
type RunTable struct {
	Name       string
	Seed       uint64
	Dir        string // folder that run folders are made in
	Policy     string // the leading one, for rules and results; empty: the only one that is learned, or else main
	Record     int64  // most bytes of the environments' recorded actions; 0 = none are
	Stop       component.StopRule
	Checkpoint Checkpoint
	Evaluation Evaluation
	Traces     string // where traces of datasets go; empty: nowhere
}

// Checkpoint says when checkpoints are taken and which are kept.
type Checkpoint struct {
	Every time.Duration `toml:"every" doc:"Time between two checkpoints, each at the next dataset boundary, and in synchronous mode one after each change; 0 = only at the end." range:"0 or more"`
	Keep  int           `toml:"keep" doc:"Newest checkpoints that are kept." range:"1 or more"`
	Best  bool          `toml:"best" doc:"Keeps the checkpoint with the best mean return, too."`
	// KeepEveryEnvSteps keeps the first checkpoint of each so many env steps as well; 0 = none.
	KeepEveryEnvSteps int `toml:"keep_every_env_steps" doc:"Keeps the first checkpoint of each period of this length, too; 0 = none." range:"0 or more" unit:"env steps"`
}

// Evaluation is the frozen evaluation at the end of a run, and during it.
type Evaluation struct {
	Episodes int    `toml:"episodes" doc:"Episodes of an evaluation." range:"1 to 1,000,000" unit:"episodes"`
	Seed     uint64 `toml:"seed" doc:"Seed of the evaluation's environments." range:"0 or more"`
	Greedy   bool   `toml:"greedy" doc:"Judges greedy actions; false judges sampled ones."`
	MaxSteps int    `toml:"max_steps" doc:"Longest episode; 0 = ten times the longest in training, at least 10,000." range:"0 or more" unit:"env steps"`
	// EveryEnvSteps is the period in env steps of evaluations during the run; 0 = none. Share is how much of a processor they may
	// use. An evaluation that is due while another is being played is skipped.
	EveryEnvSteps int `toml:"every_env_steps" doc:"Period of evaluations while training; 0 = only at the end." range:"0 or more" unit:"env steps"`
	// VideoEveryEnvSteps is the period of videos, which are one episode of the leading policy each; 0 = none.
	VideoEveryEnvSteps int     `toml:"video_every_env_steps,omitempty" doc:"Period of videos while training, one episode of the leading policy each, in videos/ of the run's folder; 0 = none." range:"0 or more" unit:"env steps"`
	Share              float64 `toml:"share" doc:"Part of one processor that evaluations while training may use." range:"above 0, up to 1"`
	// WallTime bounds the evaluation at the end; 0 = a tenth of the training's time, at least MinEvaluation.
	WallTime time.Duration `toml:"wall_time,omitempty" doc:"Longest evaluation at the end; 0 = a tenth of the training's time, at least 10 s." range:"0 or more"`
}

// MinEvaluation is how long the evaluation at the end of a run may take at least, where the file does not say.
const MinEvaluation = 10 * time.Second

// Limit returns how long the evaluation at the end of a training of that length may take.
func (e *Evaluation) Limit(training time.Duration) time.Duration {
	if e.WallTime > 0 {
		return e.WallTime
	}
	return max(training/10, MinEvaluation)
}

// MaxEpisodes bounds the episodes of an evaluation, which keeps the return of each.
const MaxEpisodes = 1_000_000

// Swap is the [swap] table: how components and environments are replaced during the run, where the request does not say otherwise.
type Swap struct {
	At         component.Boundary
	TrialEnvs  int           // environments of the trial before; 0 = no trial
	TrialSteps int           // env steps of each of them at most
	Slower     float64       // a trial refuses a version slower by more than this factor; 0 = none is too slow
	Probation  time.Duration // how long the previous version is kept ready
	KeepState  bool          // running episodes continue where both versions can
}

// SwapRule says whether something may be replaced during the run.
type SwapRule string

// Rules, as in the file.
const (
	SwapAlways SwapRule = "always"
	SwapNever  SwapRule = "never"
)

// Env is a declared environment.
type Env struct {
	Name  string
	Table EnvTable
	Swap  SwapRule // whether this environment may be swapped in the components that run it

	// Places of the values of use and sha256 in the file, for errors found later.
	UseAt, SHAAt Span

	at    Span // of its header
	table *node
}

// Place returns the place of a key of the environment's table, such as wrap[1].reward_clip, or of the table itself.
func (e *Env) Place(key string) Span {
	if n := lookup(e.table, key); n != nil {
		return n.val
	}
	return e.at
}

// KeyPlace is Place for an error of the key itself, and not of its value.
func (e *Env) KeyPlace(key string) Span {
	if n := lookup(e.table, key); n != nil {
		return n.key
	}
	return e.at
}

// EnvTable is an [env.NAME] table.
type EnvTable struct {
	env.Source
	// Plugin is the native plugin that runs the environments, nil for WebAssembly modules. With a plugin, Use is
	// the part after its name and a colon.
	Plugin *PluginTable
}

// Isolated reports whether the environments run in separate processes.
func (t *EnvTable) Isolated() bool { return t.Plugin != nil || t.Runtime == env.InProcess }

// Locate returns Use for a process outside dir, the folder that paths are relative to: a relative path is joined with
// it, everything else stays as it is. builtins are the names that are not paths.
func (t *EnvTable) Locate(dir string, builtins []string) (use string, relative bool) {
	if t.Plugin != nil || slices.Contains(builtins, t.Use) || filepath.IsAbs(t.Use) {
		return t.Use, false
	}
	return filepath.Join(dir, t.Use), true
}

// isPath distinguishes paths from names of built-in environments.
func isPath(use string) bool {
	return strings.ContainsRune(use, filepath.Separator) || strings.HasSuffix(use, ".wasm")
}

// PluginTable is a [plugin.NAME] table: a native program, and how it is run.
type PluginTable struct {
	Name string
	// Path is the program or script, relative to the file unless it is absolute; empty means the program that
	// reads the file, which can run its own kinds in a process each.
	Path          string        `toml:"path" doc:"Program or script; empty is rlhost itself."`
	Interpreter   []string      `toml:"interpreter" doc:"Command that runs the script, such as [\"python3\", \"-u\"]."`
	Args          []string      `toml:"args" doc:"Further arguments of the program."`
	SHA256        string        `toml:"sha256" doc:"SHA-256 that the file must have; empty takes any."`
	PassEnv       []string      `toml:"pass_env" doc:"Environment variables that the program gets."`
	MaxRestarts   int           `toml:"max_restarts" doc:"Restarts of an instance within restart_window before the run fails." range:"0 or more"`
	RestartWindow time.Duration `toml:"restart_window" doc:"Period that restarts are counted in; 0 = the whole run." range:"0 or more"`
	Start         time.Duration `toml:"start" doc:"Longest start of the program."`
	Stall         time.Duration `toml:"stall" doc:"Longest time without progress while work waits; 0 = any."`
	Snapshot      time.Duration `toml:"snapshot" doc:"Age of the newest state that a restarted component continues from; 0 = none."`
	Memory        int64         `toml:"memory,bytes" doc:"Most memory of arenas that an instance may ask for."`
	place.Place
}

// DefaultPlugin returns a table with the defaults of [plugin.NAME].
func DefaultPlugin() PluginTable {
	return PluginTable{MaxRestarts: 10, RestartWindow: 10 * time.Minute, Start: time.Minute, Stall: 30 * time.Second, Snapshot: 5 * time.Second, Memory: 1 << 30}
}

// Plugin is a declared plugin.
type Plugin struct {
	Table PluginTable
	// Digest is the program's when it was asked for its kinds.
	Digest string

	table   *node
	at      Span // of the value of path
	implied bool // by a policy: it has no table
	kinds   map[string]Maker
	asked   bool
	err     error // why there are no kinds
}

// Policy is a declared policy.
type Policy struct {
	Name string
	Env  string // the environment that it is made for; with Of, that of the other policy

	// Of names the policy of the file whose versions this one acts with, From a run or a file whose weights it has; at most
	// one is given. Version is which policy version; 0 where the file names none.
	Of, From string
	Version  uint64
	// Scripted: the user's component answers for it, by rules: it has no weights.
	Scripted bool
	// Group names the group of agents that it plays; empty where rollouts say so, or there is one. See Graph.GroupOf.
	Group string

	// Plugin computes it, see Parts.PolicyPlugin; empty: this program.
	Plugin string

	At Span // of env, or of the header

	table  *node
	shared *node // the table that Decode reads: the other policy's with Of, else its own
	config any   // decoded by Parts
}

// Role is where the weights of a policy come from.
type Role string

// Roles.
const (
	Learned Role = "learned" // a learner makes versions of it
	Pool    Role = "pool"    // versions that another policy of the run has had are drawn: Of without Version
	Frozen  Role = "frozen"  // one version of another policy of the run, or of another run or a file
	Rules   Role = "rules"   // it has none: the user's component acts
)

// Role says where the policy's weights come from.
func (p *Policy) Role() Role {
	switch {
	case p.Of != "" && p.Version == 0:
		return Pool
	case p.Of != "" || p.From != "":
		return Frozen
	case p.Scripted:
		return Rules
	}
	return Learned
}

// Runtimes of components.
const (
	RuntimeBuiltin = "builtin" // in the host
	RuntimeProcess = "process" // in its own process
	RuntimeWasm    = "wasm"    // a WebAssembly module in the host
)

// Modes of a run.
const (
	ModeAsync = "async"
	ModeSync  = "sync"
)

// Component is a node of the graph, with Count instances.
type Component struct {
	Name     string
	Kind     string
	Count    int
	Runtime  string  // builtin, process or wasm
	Plugin   string  // plugin that it is a component of; empty: of this program, or of Module
	Module   *Module // that it is made from where Runtime is wasm, else nil
	Swap     SwapRule
	Loop     string      // event loop of its instances; "[i]" at its end means the instance's index
	Place    place.Place // as its table says; see Graph.PlaceOf
	Hosts    HostRule    // as its table says; see Graph.HostRuleOf
	Manifest component.Manifest
	Flow     component.Flow           // zero if the kind has none
	Looks    []hostabi.ManifestColumn // columns of blocks that it says it looks at
	BurnIn   int                      // rows of each chunk that only warm up the state of the policy that it learns
	Whole    bool                     // each environment plays one episode in each of its blocks
	offers   map[string]string        // keys by the ports that they bring

	Asks map[string]Ask // by the names of Manifest.Asks

	Env, Policy string // names in its table, if it has such keys

	implied bool // Plugin is that of its policy, and its table names none
	stays   bool // in this program, as its table says, although its policy is computed by a plugin
	table   *node
	config  any // the component's decoded table
	made    component.Component
	maker   Maker // of a plugin's kinds and of a module, nil for the program's own
}

// ModuleTable has the keys of the module in [component.NAME] with runtime = "wasm".
type ModuleTable struct {
	Use           string        `toml:"use" doc:"Path of the module." default:"required"`
	Grants        []string      `toml:"grants" doc:"Imports and capabilities that it may use." range:"log, metric, stop"`
	Limits        ModuleLimits  `toml:"limits"`
	Data          string        `toml:"data" doc:"Folder that it may read, as /data; nothing can be written there."`
	SHA256        string        `toml:"sha256" doc:"SHA-256 that the file must have; empty takes any."`
	MaxRestarts   int           `toml:"max_restarts" doc:"Faults of an instance within restart_window before the run fails." range:"0 or more"`
	RestartWindow time.Duration `toml:"restart_window" doc:"Period that faults are counted in; 0 = the whole run." range:"0 or more"`
}

// ModuleLimits bound each instance of a module; zero means the runtime's default.
type ModuleLimits struct {
	env.Limits
	Leases int `toml:"leases" doc:"Most blocks that it may hold at once." default:"64"`
}

// Module is the module that a component is made from.
type Module struct {
	Table ModuleTable
	// Digest is the file's when it was asked for its ports, DataDigest that of the folder of data; empty without one.
	Digest, DataDigest string
}

// ownKeys are the keys of a component's table that belong to the pipeline.
var ownKeys = []string{"kind", "count", "loop", "runtime", "plugin", "swap", "build", "build_timeout", "cores", "nice", "threads", keyHosts, "asks"}

// moduleKeys are the keys of a component's table that belong to its module.
var moduleKeys = []string{"use", "grants", "limits", "data", "sha256", "max_restarts", "restart_window"}

// SourceKeys are the keys of a component's source in its table, without runtime.
var SourceKeys = append([]string{"plugin"}, moduleKeys...)

// ownKeys returns the keys of the component's table that are the pipeline's, and not its own.
func (x *Component) ownKeys() []string {
	if x.Runtime == RuntimeWasm {
		return slices.Concat(ownKeys, moduleKeys)
	}
	return ownKeys
}

// Wire connects one signal of all instances of a component to one slot of all instances of another.
type Wire struct {
	From, Signal string
	To, Slot     string
	Mode         bus.Mode
	Depth        int
	OnFull       bus.Overflow
	Payload      string
	// Answer is how long an answer to a message of the wire may take, 0 for ever; 0 too where the messages are no requests.
	Answer time.Duration
	Write  []string // columns that the receiver may write in blocks of the messages, sorted

	// Paired: each instance sends to the one of the same number alone, because both components are in a group that counts them.
	Paired bool

	SlotAt                     Span // where the slot is named
	signalAt, depthAt, writeAt Span
}

// DefaultAnswer is how long an answer may take where a wire of requests does not say.
const DefaultAnswer = 30 * time.Second

// String names the wire by its ends.
func (w *Wire) String() string {
	return component.Qualified(w.From, w.Signal) + wireArrow + component.Qualified(w.To, w.Slot)
}

// wireArrow separates the ends of a wire.
const wireArrow = " → "

// Maker makes an unconfigured component of one kind.
type Maker func() (component.Component, error)

// BuiltinMaker is the Maker of a kind that is always there.
func BuiltinMaker(make func() component.Component) Maker {
	return func() (component.Component, error) { return make(), nil }
}

// Component returns the component of that name, or nil. A nil graph has none.
func (g *Graph) Component(name string) *Component {
	if g == nil {
		return nil
	}
	i := slices.IndexFunc(g.Components, func(c Component) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &g.Components[i]
}

// key returns a key of the component's table, or nil.
func (x *Component) key(name string) *node {
	if x == nil {
		return nil
	}
	return x.table.at(name)
}

// Env returns the environment of that name, or nil.
func (g *Graph) Env(name string) *Env {
	i := slices.IndexFunc(g.Envs, func(e Env) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	return &g.Envs[i]
}

// Policy returns the policy of that name, or nil.
func (g *Graph) Policy(name string) *Policy {
	i := slices.IndexFunc(g.Policies, func(p Policy) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &g.Policies[i]
}

// Plugin returns the plugin of that name, or nil.
func (g *Graph) Plugin(name string) *Plugin {
	i := slices.IndexFunc(g.Plugins, func(p *Plugin) bool { return p.Table.Name == name })
	if i < 0 {
		return nil
	}
	return g.Plugins[i]
}

// Mode returns ModeSync or ModeAsync.
func (g *Graph) Mode() string {
	if g.Synchronous {
		return ModeSync
	}
	return ModeAsync
}
