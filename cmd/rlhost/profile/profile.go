package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline/bench"
	"github.com/rlhost/rlhost/plugins/wasm"
	"github.com/rlhost/rlhost/plugins/wasm/guest"
)

// Options of a profile.
type Options struct {
	Path   string     // of the module, for messages
	Module []byte     // its content; nil: the file at Path
	Source env.Source // how it is loaded
	Envs   int        // stepped by one call
	Time   time.Duration
}

// Result is a profile. Stacks add up to Time, save for the rest after the last sample.
type Result struct {
	Env       string        `json:"env"`
	Envs      int           `json:"envs"`
	EnvSteps  int           `json:"env_steps"`
	Time      time.Duration `json:"time_ns"`      // in the module's calls, and the host's work around them
	Plain     float64       `json:"plain_ns"`     // of an env step without samples
	Sampled   float64       `json:"sampled_ns"`   // and with them
	Fuel      float64       `json:"fuel"`         // of an env step
	Samples   int           `json:"samples"`      // taken
	Exports   []Share       `json:"exports"`      // by exported function
	Functions []Function    `json:"functions"`    // by time of their own
	Stacks    []guest.Stack `json:"-"`            // that were seen
	Rest      time.Duration `json:"unsampled_ns"` // after the last sample
}

// Share is the time of one name.
type Share struct {
	Name string        `json:"name"`
	Time time.Duration `json:"time_ns"`
}

// Function is the time of one function: its own, and with all that it calls.
type Function struct {
	Name  string        `json:"name"`
	Own   time.Duration `json:"own_ns"`
	Whole time.Duration `json:"whole_ns"`
}

// rounds is how often steps without samples and steps with them take turns: a slow moment of the machine hits both.
const rounds = 10

// Run steps a module's environments with random actions and samples them. A wrong module is a *table.Error.
func Run(ctx context.Context, o Options, compiler string) (*Result, error) {
	sampler := &guest.Sampler{}
	runtime, err := wasm.New(wasm.Options{Compiler: compiler, Sampler: sampler})
	if err != nil {
		return nil, err
	}
	plugin, err := runtime.Load(ctx, o.Path, o.Module, o.Source)
	if err != nil {
		return nil, errors.Join(err, runtime.Close())
	}
	r, err := run(&o, plugin, sampler)
	return r, errors.Join(err, plugin.Close(), runtime.Close())
}

func run(o *Options, plugin env.Plugin, sampler *guest.Sampler) (*Result, error) {
	stepper, err := bench.NewStepper(plugin, o.Envs)
	if err != nil {
		return nil, err
	}
	r := &Result{Env: plugin.Spec().Name, Envs: o.Envs}
	var plain, sampled []float64
	for range rounds {
		steps, took, err := stepper.Step(o.Time/(4*rounds), nil)
		if err != nil {
			return nil, errors.Join(err, stepper.Close())
		}
		plain = append(plain, float64(took)/float64(steps))
		looked := sampler.Looking()
		if steps, took, err = stepper.Step(o.Time/rounds, sampler.Watch); err != nil {
			return nil, errors.Join(err, stepper.Close())
		}
		sampled = append(sampled, float64(took)/float64(steps))
		r.EnvSteps += steps
		r.Time += took - (sampler.Looking() - looked)
	}
	slices.Sort(plain)
	slices.Sort(sampled)
	r.Plain, r.Sampled = plain[rounds/2], sampled[rounds/2]
	r.Fuel, r.Rest, r.Stacks = float64(sampler.Fuel())/float64(max(r.EnvSteps, 1)), sampler.Rest(), sampler.Stacks()
	r.sum()
	return r, stepper.Close()
}

// sum sums the stacks up by exports and by functions.
func (r *Result) sum() {
	exports, own, whole := map[string]time.Duration{}, map[string]time.Duration{}, map[string]time.Duration{}
	for _, s := range r.Stacks {
		r.Samples += s.Samples
		if len(s.Places) == 0 {
			continue
		}
		exports[s.Places[len(s.Places)-1].Function] += s.Time
		own[s.Places[0].Function] += s.Time
		seen := map[string]bool{}
		for _, p := range s.Places {
			if !seen[p.Function] {
				seen[p.Function] = true
				whole[p.Function] += s.Time
			}
		}
	}
	for name, t := range exports {
		r.Exports = append(r.Exports, Share{name, t})
	}
	slices.SortFunc(r.Exports, func(a, b Share) int { return cmp.Or(cmp.Compare(b.Time, a.Time), strings.Compare(a.Name, b.Name)) })
	for name := range maps.Keys(whole) {
		r.Functions = append(r.Functions, Function{name, own[name], whole[name]})
	}
	slices.SortFunc(r.Functions, func(a, b Function) int {
		return cmp.Or(cmp.Compare(b.Own, a.Own), cmp.Compare(b.Whole, a.Whole), strings.Compare(a.Name, b.Name))
	})
}

// WriteFolded writes the stacks as lines of functions, the outermost first, and nanoseconds: what flame graphs are made from.
func (r *Result) WriteFolded(to io.Writer) error {
	lines := map[string]time.Duration{}
	for _, s := range r.Stacks {
		var names []string
		for _, p := range slices.Backward(s.Places) {
			names = append(names, strings.NewReplacer(";", ",", "\n", " ").Replace(p.Function))
		}
		lines[strings.Join(names, ";")] += s.Time
	}
	for _, line := range slices.Sorted(maps.Keys(lines)) {
		if _, err := fmt.Fprintf(to, "%s %d\n", line, lines[line].Nanoseconds()); err != nil {
			return err
		}
	}
	return nil
}
