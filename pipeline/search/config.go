package search

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/table"
)

// Config is the table [sweep] of a pipeline.
type Config struct {
	Method    string   `toml:"method" json:"method" doc:"Which trials go on at a rung: all (none), the best of all (halving), the best so far (asha), those above the median (median), or those that the program lets (program)." range:"none, halving, asha, median, program"`
	Sampler   string   `toml:"sampler" json:"sampler" doc:"Where the trials' values come from." range:"grid, random, sobol, program" default:"program with a program, grid where every key has choices or grid, else random"`
	Program   []string `toml:"program" json:"program,omitempty" doc:"Command of a program that is asked for values, and about rungs with method = \"program\"." range:"see [search](../how-to/search.md#a-program-that-asks-and-tells)"`
	Trials    int      `toml:"trials" json:"trials" doc:"Trials of the search." range:"1 to 10,000" default:"the whole grid" unit:"trials"`
	EnvSteps  uint64   `toml:"env_steps" json:"env_steps" doc:"Env steps of a whole trial; schedules run over these, wherever a rung stops." range:"1 or more" default:"run.stop.env_steps" unit:"env steps"`
	Objective string   `toml:"objective" json:"objective" doc:"Metric that is compared: the mean return of the evaluation at the end of a trial or a rung, or a column of metrics.jsonl, whose last value counts."`
	Goal      string   `toml:"goal" json:"goal" doc:"Whether a high value is good." range:"max, min"`
	Episodes  int      `toml:"episodes" json:"episodes" doc:"Episodes of each evaluation; 0 = run.evaluation.episodes." range:"0 to 1,000,000" unit:"episodes"`
	Seeds     int      `toml:"seeds" json:"seeds" doc:"Runs of each trial, with the seeds from run.seed on; the trial's value is their mean." range:"1 to 1,000" unit:"seeds"`
	Seed      uint64   `toml:"seed" json:"seed" doc:"Seed of the values that are drawn." range:"0 or more"`
	Batch     int      `toml:"batch" json:"batch" doc:"Trials that a program is asked for together; the search is the same for any number of jobs." range:"1 to 1,000" unit:"trials"`
	Confirm   Confirm  `toml:"confirm" json:"confirm"`
	Rungs     Rungs    `toml:"rungs" json:"rungs"`

	Space map[string]Dim `toml:"space" json:"space" name:"KEY"`
}

// Confirm says how the best trials are trained again, from nothing, with seeds that the search has not seen.
type Confirm struct {
	Top   int `toml:"top" json:"top" doc:"Best trials that are trained again from nothing; 0 = none." range:"0 to 100" unit:"trials"`
	Seeds int `toml:"seeds" json:"seeds" doc:"Seeds of each of them, which the search has not seen." range:"2 to 1,000" unit:"seeds"`
}

// Rungs are the env steps at which trials are compared.
type Rungs struct {
	Least  uint64 `toml:"least" json:"least" doc:"Env steps up to the first rung." range:"1 or more" default:"env_steps / factor²" unit:"env steps"`
	Factor int    `toml:"factor" json:"factor" doc:"Env steps of a rung over those of the rung before; of halving and asha, one trial in so many goes on." range:"2 to 100"`
}

// Dim is what a key of a pipeline may be: numbers between two bounds, or choices.
type Dim struct {
	From    *float64 `toml:"from" json:"from,omitempty" doc:"Lowest value." range:"below to"`
	To      *float64 `toml:"to" json:"to,omitempty" doc:"Highest value." range:"above from"`
	Scale   string   `toml:"scale" json:"scale,omitempty" doc:"On which scale values are even: of themselves, of their logarithm, or of the logarithm of one minus them." range:"linear, log, one_minus" default:"\"linear\""`
	Integer bool     `toml:"integer" json:"integer,omitempty" doc:"Takes whole numbers alone." default:"false"`
	Grid    int      `toml:"grid" json:"grid,omitempty" doc:"Values of the key in a grid, evenly spaced on the scale." range:"2 to 10,000"`
	Choices []any    `toml:"choices" json:"choices,omitempty" doc:"Values to choose from, in place of bounds." range:"2 or more"`
}

// Words of Config.
const (
	None        = "none"
	Halving     = "halving"
	ASHA        = "asha"
	Median      = "median"
	ByProgram   = "program"
	Grid        = "grid"
	Random      = "random"
	Sobol       = "sobol"
	Max         = "max"
	Min         = "min"
	linear      = "linear"
	logarithmic = "log"
	oneMinus    = "one_minus"
)

// EvalReturn is the objective that is the mean return of a run's evaluation.
const EvalReturn = "eval/episodic_return"

// Bounds of a search.
const (
	maxTrials = 10_000
	maxSeeds  = 1000
)

// Default returns the configuration of an empty table.
func Default() Config {
	return Config{Method: None, Objective: EvalReturn, Goal: Max, Episodes: 50, Seeds: 1, Seed: 1, Batch: 8,
		Confirm: Confirm{Top: 3, Seeds: 10}, Rungs: Rungs{Factor: 4}}
}

// Complete fills in what the table leaves out, envSteps being the run's own limit, and checks all. The error joins a *table.Error for each
// key that is wrong; one about a key of the space has the Table "space".
func (c *Config) Complete(envSteps uint64) error {
	var errs faults
	c.EnvSteps = cmp.Or(c.EnvSteps, envSteps)
	c.Sampler = cmp.Or(c.Sampler, c.likelySampler())
	errs.word("method", c.Method, slices.Sorted(maps.Keys(methods)))
	errs.word("sampler", c.Sampler, append(slices.Sorted(maps.Keys(samplers)), ByProgram))
	errs.word("goal", c.Goal, []string{Max, Min})
	errs.between("episodes", c.Episodes, 0, 1_000_000)
	errs.between("seeds", c.Seeds, 1, maxSeeds)
	errs.between("batch", c.Batch, 1, maxSeeds)
	errs.between("confirm.top", c.Confirm.Top, 0, 100)
	errs.between("confirm.seeds", c.Confirm.Seeds, 2, maxSeeds)
	errs.between("rungs.factor", c.Rungs.Factor, 2, 100)
	if c.EnvSteps == 0 {
		errs.missing("env_steps", "say how many env steps a whole trial makes, here or as run.stop.env_steps")
	}
	c.checkProgram(&errs)
	c.checkSpace(&errs)
	if len(errs) == 0 {
		c.countTrials(&errs)
		c.placeRungs(&errs)
	}
	return errs.joined()
}

func (c *Config) likelySampler() string {
	switch {
	case len(c.Program) > 0:
		return ByProgram
	case len(c.Space) > 0 && !slices.ContainsFunc(slices.Collect(maps.Values(c.Space)), func(d Dim) bool { return d.points() == 0 }):
		return Grid
	}
	return Random
}

func (c *Config) checkProgram(errs *faults) {
	asks := c.Sampler == ByProgram || c.Method == ByProgram
	if asks && len(c.Program) == 0 {
		errs.missing("program", `name its command, such as ["python3", "-m", "rlhost.optuna"]`)
	}
	if c.Sampler == ByProgram && c.Method != None && c.Method != ByProgram {
		errs.add("sampler", "take method none or program", "is program, which learns of each trial once, and method is %s", c.Method)
	}
	if !asks && len(c.Program) > 0 {
		errs.add("program", `leave it out, or write sampler = "program"`, "is for sampler or method = \"program\", and there is neither")
	}
}

// checkSpace checks the keys of the space one by one.
func (c *Config) checkSpace(errs *faults) {
	if len(c.Space) == 0 {
		errs.missing("space", `name what is searched: [sweep.space] with "component.learner.learning_rate" = { from = 1e-5, to = 1e-2, scale = "log" }`)
	}
	for _, key := range c.Keys() {
		d := c.Space[key]
		if reason, help := d.fault(); reason != "" {
			*errs = append(*errs, &table.Error{Code: table.CodeRange, Table: "space", Key: key, Reason: reason, Help: help})
		} else if c.Sampler == Grid && d.points() == 0 {
			*errs = append(*errs, &table.Error{Code: table.CodeRange, Table: "space", Key: key, Reason: "has bounds, and a grid takes single values",
				Help: "write grid = 5 for five of them, or choices"})
		}
	}
	if c.Sampler == Sobol && len(c.Space) > maxSobol {
		errs.add("sampler", `random takes any number`, "is sobol, which has directions for %d keys, and the space has %d", maxSobol, len(c.Space))
	}
}

// countTrials gives a grid its size.
func (c *Config) countTrials(errs *faults) {
	all := 1
	for _, d := range c.Space {
		if n := d.points(); c.Sampler == Grid && all <= maxTrials {
			all *= n
		}
	}
	switch {
	case c.Sampler == Grid && all > maxTrials && c.Trials == 0:
		errs.add("space", "take fewer values a key, or sampler = \"random\" with a number of trials", "has a grid of more than %d trials", maxTrials)
	case c.Sampler == Grid && (c.Trials == 0 || c.Trials > all && all <= maxTrials):
		c.Trials = all
	case c.Trials == 0:
		errs.missing("trials", "say how many trials the search makes")
	default:
		errs.between("trials", c.Trials, 1, maxTrials)
	}
}

// placeRungs gives the first rung its env steps, and checks that some trial can come to the last one.
func (c *Config) placeRungs(errs *faults) {
	f := uint64(c.Rungs.Factor)
	c.Rungs.Least = cmp.Or(c.Rungs.Least, max(c.EnvSteps/(f*f), 1))
	if c.Rungs.Least > c.EnvSteps {
		errs.add("rungs.least", "take fewer than env_steps", "is %d, and a whole trial makes %d env steps", c.Rungs.Least, c.EnvSteps)
		return
	}
	if c.Method != ASHA {
		return
	}
	least := 1
	for range c.Stops()[1:] {
		least *= c.Rungs.Factor
	}
	if c.Trials < least {
		errs.add("trials", fmt.Sprintf("ask for %d trials or more, or raise rungs.least", least),
			"is %d: with %d rungs and one trial in %d going on, none would make all of its env steps", c.Trials, len(c.Stops()), c.Rungs.Factor)
	}
}

// Stops are the env steps of the rungs, the last of which is a whole trial's.
func (c *Config) Stops() []uint64 {
	if c.Method == None {
		return []uint64{c.EnvSteps}
	}
	var stops []uint64
	for at := c.Rungs.Least; at < c.EnvSteps; at *= uint64(c.Rungs.Factor) {
		if stops = append(stops, at); at > math.MaxUint64/uint64(c.Rungs.Factor) {
			break
		}
	}
	return append(stops, c.EnvSteps)
}

// Synchronous reports whether the search is a function of its file and its seed alone, with any number of jobs.
func (c *Config) Synchronous() bool { return c.Method == None || c.Method == Halving }

// Keys returns the keys of the space, sorted.
func (c *Config) Keys() []string { return slices.Sorted(maps.Keys(c.Space)) }

// Better reports whether a value is better than another.
func (c *Config) Better(a, b float64) bool {
	if c.Goal == Min {
		return a < b
	}
	return a > b
}

// faults are the errors of a table.
type faults []*table.Error

func (f *faults) add(key, help, reason string, args ...any) {
	*f = append(*f, &table.Error{Code: table.CodeRange, Key: key, Reason: fmt.Sprintf(reason, args...), Help: help})
}

func (f *faults) missing(key, help string) {
	*f = append(*f, &table.Error{Code: "E004", Key: key, Reason: "is missing", Help: help})
}

func (f *faults) word(key, value string, words []string) {
	if !slices.Contains(words, value) {
		*f = append(*f, &table.Error{Code: "E010", Key: key, Reason: fmt.Sprintf("is %q", value), Help: table.DidYouMean(value, "%q", "choose", words)})
	}
}

func (f *faults) between(key string, value, least, most int) {
	if value < least || value > most {
		f.add(key, "", "is %d, must be %d to %d", value, least, most)
	}
}

func (f faults) joined() error {
	if len(f) == 0 {
		return nil
	}
	return invalid(f)
}

// invalid is several errors of a table.
type invalid []*table.Error

func (e invalid) Error() string {
	var lines []string
	for _, one := range e {
		lines = append(lines, one.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors one by one.
func (e invalid) Unwrap() (list []error) {
	for _, one := range e {
		list = append(list, one)
	}
	return list
}
