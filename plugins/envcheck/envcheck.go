package envcheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Verdict is the outcome of one check.
type Verdict string

// Verdicts.
const (
	OK      Verdict = "ok"
	Warning Verdict = "warn"
	Failed  Verdict = "FAIL"
)

// Result is one check and its outcome.
type Result struct {
	ID      string  `json:"id"` // such as D01
	Title   string  `json:"title"`
	Verdict Verdict `json:"verdict"`
	Detail  string  `json:"detail"` // the finding
	Help    string  `json:"help,omitempty"`
}

// Options bound the checks.
type Options struct {
	Envs  int    // stepped together; default 4
	Steps int    // of each trace; default 1000
	Seed  uint64 // of environments and actions
	// Python says that the environment is one of Gymnasium or PettingZoo, whose author is told in words of Python what to do.
	Python bool

	Done func(Result) // called after each check; may be nil
}

// check is one entry of the list: its name and its function.
type check struct {
	id, title, help string
	run             func(*checker) (Verdict, string, error)
}

// checks returns all checks in the order in which they run. If the environment cannot be stepped at all, later ones are
// skipped.
func checks() []check {
	return []check{
		{"M03", "a stack that overflows is noticed", "", (*checker).examined},
		{"A01", "steps without a fault", "correct what the call above writes or returns; a trap names the environment if rl_current_env is exported, as the SDKs do", (*checker).steps},
		{"A02", "tells of its errors", "return an error from the call that fails, or end the episode; a text alone stops nothing", (*checker).silentErrors},
		{"M01", "writes every element", "write the whole row in each reset and step, and the final observation where an episode ends: blocks are used again", (*checker).writesAll},
		{"M02", "writes nothing else", "look for an index beyond the described shape, strides that are not the bound ones, or a null pointer", (*checker).writesNothingElse},
		{"S02", "observations inside the declared bounds", "declare wider bounds, or none: RL_TENSOR_NO_LOW and RL_TENSOR_NO_HIGH in a description, equal ones in an SDK", (*checker).bounds},
		{"T01", "episodes end", "end episodes with terminated, or limit them with truncated", (*checker).ends},
		{"T02", "has a time limit", "set episode_limit in the description, or put wrap = [{ time_limit = N }] into the [env] table", (*checker).timeLimit},
		{"D01", "same seed, same trace", "look for memory that is read before it is written, for time, for addresses that count, for another random generator", (*checker).sameSeed},
		{"D02", "other seed, other trace", "use the seeds that rl_reset is given", (*checker).otherSeed},
		{"D03", "environments do not share state", "keep all state in each environment's own struct and not in globals, and take random numbers from its own stream: rand, random_get and time are one for all", (*checker).independent},
		{"D04", "reset starts the stream again", "set every field in reset: nothing of the episodes before may stay, nor a counter go on", (*checker).resetSeed},
		{"D05", "a snapshot gives the same future", "keep all state in the guest's memory and globals", (*checker).snapshot},
		{"D06", "a saved environment goes on elsewhere", "save values, not pointers: load writes them into another instance, where everything lies elsewhere; a state in C that cannot be saved says .save = RL_NOT_SAVED", (*checker).moved},
		{"D07", "other strides, same trace", "use the addresses and strides of rl_bind for every access, stride_elem too, look at ptr before an optional tensor is used (0 is a null pointer, and reads as memory), and leave CAP_STRIDES out if that is too slow", (*checker).strides},
		{"D08", "a state of another version is refused", "begin what rl_save writes with the state_version of the description and the number of bytes that follow; rl_load returns RL_STATUS_VERSION for another version", (*checker).stateVersion},
		{"D09", "parts of a batch in any order, same trace", "step environments first to first + count - 1 and no other; nothing may depend on which part comes first", (*checker).parts},
		{"D10", "bound again between steps, same trace", "keep nothing in the block but what rl_bind names, and use the newest bindings in every call", (*checker).rebound},
		{"D11", "what is written is never read", "keep in the environment's own memory what it needs again: the block is the host's, and the next one may lie elsewhere", (*checker).readsNothing},
		{"R01", "pictures change nothing", "draw from a copy of the state, without the random stream, and write as many bytes as the description says", (*checker).pictures},
		{"R02", "keys of a person are actions", "write a line for each key, such as left=0: a number for each element of all actions, within its space", (*checker).keys},
		{"E03", "every action is legal after an end", "write 1 into the whole row of the mask where an episode has ended and the next step begins another", (*checker).maskAfterEnd},
		{"G01", "agents that do not act have every action", "write 1 into the whole row of the mask of an agent that is not active: nobody reads what it draws", (*checker).idleAgents},
		{"E02", "autoreset as declared", "see the environment ABI on next_step, same_step and disabled", (*checker).autoreset},
		{"E04", "waits for its reset", "under disabled, write reward 0, no flags and the same observation where the episode is over, read no action and draw no random number", (*checker).waits},
	}
}

// inPython are the remedies whose words are of modules, as an author in Python would say them.
var inPython = map[string]string{
	"S02": "widen low and high of the observation space, or clip what is observed",
	"T02": "register the environment with max_episode_steps, or put wrap = [{ time_limit = N }] into the [env] table",
	"D01": "draw random numbers from self.np_random alone, not from random or numpy.random; look for the time, and for the order of a set",
	"D02": "call super().reset(seed=seed) in reset, and draw random numbers from self.np_random",
	"D03": "keep all state in self: nothing in variables of the module or the class, and no random numbers of random or numpy.random, which are one for all",
	"D04": "set every attribute in reset, and draw random numbers from self.np_random, which super().reset(seed=seed) begins again",
	"D09": "keep all state in self: nothing may depend on which environment steps first",
	"D11": "keep in self what a step needs again: the arrays that a step has returned are copied at once",
}

func (o *Options) setDefaults(spec *hostabi.EnvSpec) {
	if o.Envs == 0 {
		o.Envs = 4
	}
	if o.Steps == 0 {
		o.Steps = 1000
	}
	if spec.MaxEnvs > 0 {
		o.Envs = min(o.Envs, spec.MaxEnvs)
	}
}

// drivers is how many drivers checks have at a time at most, each with a block.
const drivers = 2

// CheckMemory reports before a Run whether the plugin's environments have enough memory for the checks; the error is a
// *env.MemoryError or a *env.ParamsError, or wraps trajectory.ErrShape.
func CheckMemory(p env.Plugin, o Options) error {
	spec := p.Spec()
	o.setDefaults(&spec)
	if err := env.CheckParams(&spec, drivers, o.Envs); err != nil {
		return err
	}
	schema, err := trajectory.NewSchema(spec, trajectory.Shape{Steps: env.DriverRows, Envs: o.Envs, Shaped: env.Shapes(p)})
	if errors.Is(err, trajectory.ErrShape) {
		bytes := 0
		for _, d := range spec.All(hostabi.RoleObservation) {
			bytes += d.Elems(hostabi.MaxTensorElems) * d.DType.Bytes()
		}
		const mib = 1 << 20
		return fmt.Errorf("an observation takes %.1f MiB, and checks need room for %d steps of %d environments: %w",
			float64(bytes)*float64(spec.Agents())/mib, env.DriverRows, o.Envs, err)
	}
	if err != nil {
		return err
	}
	return env.CheckMemory(p, 1, schema)
}

// Run runs all checks. An error of the environment fails the current check.
func Run(ctx context.Context, p env.Plugin, o Options) []Result {
	c := &checker{ctx: ctx, plugin: p, spec: p.Spec(), o: o}
	c.o.setDefaults(&c.spec)
	if r, ok := p.(env.Reusing); ok {
		r.Reuse(drivers)
	}
	var results []Result
	for _, k := range checks() {
		r := Result{ID: k.id, Title: k.title}
		var err error
		r.Verdict, r.Detail, err = k.run(c)
		if err != nil {
			r.Verdict, r.Detail = Failed, err.Error()
		}
		if r.Verdict != OK {
			r.Help = cmp.Or(c.help, k.help)
			if told, ok := inPython[k.id]; ok && o.Python {
				r.Help = told
			}
		}
		c.help = ""
		results = append(results, r)
		if o.Done != nil {
			o.Done(r)
		}
		if k.id == "A01" && r.Verdict == Failed {
			break
		}
	}
	return results
}

// checker is the shared state of the checks.
type checker struct {
	ctx    context.Context
	plugin env.Plugin
	spec   hostabi.EnvSpec
	o      Options
	base   *trace    // of the first run
	help   string    // of the check in progress, in place of its usual one
	until  time.Time // end of the watched run, where that has one

	guarded    *trace // of a run whose writes are watched, nil before it was made
	guardedErr error  // the error that ended it
}

// capped returns n, or the most environments that a batch can have.
func (k *checker) capped(n int) int {
	if k.spec.MaxEnvs > 0 {
		return min(n, k.spec.MaxEnvs)
	}
	return n
}
