package search

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/table"
)

func bounds(from, to float64, scale string) Dim { return Dim{From: &from, To: &to, Scale: scale} }

// config returns a complete configuration of a small space.
func config(t *testing.T, change func(*Config)) *Config {
	t.Helper()
	c := Default()
	c.Space = map[string]Dim{"a.rate": bounds(1e-4, 1e-1, "log"), "b.size": {Choices: []any{int64(1), int64(2)}}}
	c.Trials, c.EnvSteps, c.Confirm.Top = 16, 64_000, 0
	c.Rungs.Least = 1000
	change(&c)
	if err := c.Complete(0); err != nil {
		t.Fatal(err)
	}
	return &c
}

// The golden points are SciPy 1.17's qmc.Sobol(21, scramble=False, bits=32), times 2³².
func TestSobol_HasThePointsOfSciPy(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/sobol.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) != 32 {
		t.Fatal(len(rows), err)
	}
	for _, row := range rows {
		index, _ := strconv.Atoi(row[0])
		for d, want := range row[1:] {
			if got := fmt.Sprint(sobolWord(uint32(index), d)); got != want {
				t.Errorf("point %d, dimension %d: %s, SciPy has %s", index, d+1, got, want)
			}
		}
	}
}

// Of each aligned block of 2^k points one falls into each of 2^k intervals, in every dimension, whatever the shift.
func TestSobol_FillsEachKeyEvenly(t *testing.T) {
	t.Parallel()
	c := config(t, func(c *Config) {
		c.Sampler, c.Trials, c.Seed, c.Space = Sobol, 64, 7, map[string]Dim{}
		for i := range maxSobol {
			c.Space[fmt.Sprintf("k%d", i)] = bounds(0, 1, "")
		}
	})
	seen := map[string][]int{}
	for trial := range 64 {
		p, err := sobol{c}.Ask(nil, trial, trial)
		if err != nil {
			t.Fatal(err)
		}
		for key, v := range p {
			seen[key] = append(seen[key], int(v.(float64)*64))
		}
	}
	for key, cells := range seen {
		slices.Sort(cells)
		for i, cell := range cells {
			if i != cell {
				t.Fatalf("%s is in cells %v", key, cells)
			}
		}
	}
}

func TestDim_ValuesStayInTheirBoundsAndScale(t *testing.T) {
	t.Parallel()
	log, far := bounds(1e-6, 1e-2, "log"), bounds(0.9, 0.9999, "one_minus")
	if v := log.value(0.5).(float64); math.Abs(v-1e-4) > 1e-12 {
		t.Errorf("the middle of 1e-6 to 1e-2 on a log scale is %g", v)
	}
	if v := far.value(0.5).(float64); math.Abs(1-v-math.Sqrt(0.1*1e-4)) > 1e-9 {
		t.Errorf("the middle of 0.9 to 0.9999 on one_minus is %g", v)
	}
	whole := bounds(1, 4, "")
	whole.Integer = true
	count := map[int64]int{}
	for i := range 4000 {
		count[whole.value(float64(i)/4000).(int64)]++
	}
	for k := int64(1); k <= 4; k++ {
		if count[k] != 1000 {
			t.Errorf("whole numbers from 1 to 4 come %v times", count)
		}
	}
	for _, d := range []Dim{log, far, whole} {
		for _, u := range []float64{0, 0.3, 1 - 1e-12} {
			if err := d.contains(d.value(u)); err != nil {
				t.Errorf("%g: %v", u, err)
			}
		}
	}
}

func TestGrid_HasEachCombinationOnce(t *testing.T) {
	t.Parallel()
	five := bounds(1e-5, 1e-1, "log")
	five.Grid = 5
	c := config(t, func(c *Config) {
		c.Space = map[string]Dim{"a": five, "b": {Choices: []any{"x", "y"}}}
		c.Trials = 0
	})
	if c.Sampler != Grid || c.Trials != 10 {
		t.Fatalf("%s of %d trials", c.Sampler, c.Trials)
	}
	var all []string
	for i := range c.Trials {
		p, err := grid{c}.Ask(nil, i, i)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Join(p.Sets(), " "))
	}
	if want := `a=1e-05 b="x"`; all[0] != want {
		t.Errorf("the first is %s, want %s", all[0], want)
	}
	if want := `a=0.001 b="y"`; all[5] != want {
		t.Errorf("the sixth is %s, want %s", all[5], want)
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != 10 {
		t.Errorf("points %v", all)
	}
	if _, err := (grid{c}).Ask(nil, 10, 10); err == nil {
		t.Error("there is an eleventh point")
	}
}

// play runs a plan to its end, with so many runs at a time, which end in an order that ends gives.
func play(t *testing.T, p *Plan, h *History, score func(trial int, until uint64, seed uint64) (float64, error), jobs int, pick func(n int) int) {
	t.Helper()
	var under []Task
	for range 100_000 {
		step, err := p.Next(h)
		if err != nil {
			t.Fatal(err)
		}
		if len(under) < jobs && len(step.Orders) > 0 {
			if err := h.Add(&Record{Orders: step.Orders}); err != nil {
				t.Fatal(err)
			}
			for _, o := range step.Orders {
				for _, seed := range o.Seeds {
					under = append(under, Task{o, seed})
				}
			}
			continue
		}
		if len(under) == 0 {
			if !step.Done {
				t.Fatal("the plan waits for nothing")
			}
			return
		}
		i := pick(min(len(under), jobs))
		o := Outcome{Trial: under[i].Trial, Rung: under[i].Rung, Confirm: under[i].Confirm, Seed: under[i].Seed, EnvSteps: under[i].Until}
		if v, err := score(o.Trial, o.EnvSteps, o.Seed); err != nil {
			o.Failed(err)
		} else {
			o.Judged(v)
		}
		under = slices.Delete(under, i, i+1)
		if err := h.Add(&Record{Outcome: &o}); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the plan has no end")
}

func first(int) int { return 0 }

func heights(h *History) (list []int) {
	for i := range h.Trials {
		for len(list) < len(h.Trials[i].Rungs) {
			list = append(list, 0)
		}
		for r := range h.Trials[i].Rungs {
			list[r]++
		}
	}
	return list
}

func TestHalving_TrainsTheBestQuarterFurther(t *testing.T) {
	t.Parallel()
	for _, goal := range []string{Max, Min} {
		c := config(t, func(c *Config) { c.Method, c.Goal, c.Seeds = Halving, goal, 2 })
		p, err := NewPlan(c, 5, nil)
		if err != nil {
			t.Fatal(err)
		}
		h := NewHistory(c)
		play(t, p, h, func(trial int, _ uint64, seed uint64) (float64, error) {
			return float64(trial*7%16) + float64(seed), nil
		}, 3, first)
		if got := heights(h); !slices.Equal(got, []int{16, 4, 1, 1}) {
			t.Errorf("rungs have %v trials", got)
		}
		best := h.Best()[0]
		if want := map[string]int{Max: 9, Min: 0}[goal]; best.Number != want || len(best.Rungs) != 4 {
			t.Errorf("the best for %s is trial %d at rung %d, want %d", goal, best.Number, len(best.Rungs), want)
		}
		if v, _ := best.Last().Value(); math.Abs(v-math.Trunc(v)-0.5) > 1e-9 {
			t.Errorf("the value %g is no mean of seeds 5 and 6", v)
		}
	}
}

// Rule: a trial waits at its rung until it is among the best 1/factor there, so that nobody is trained further for lack of company.
func TestASHA_PromotesOnlyAmongTheBest(t *testing.T) {
	t.Parallel()
	for _, jobs := range []int{1, 2, 8} {
		c := config(t, func(c *Config) { c.Method, c.Trials = ASHA, 64 })
		p, err := NewPlan(c, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		h := NewHistory(c)
		turn := 0
		pick := func(n int) int { turn++; return turn * 7 % n }
		score := func(trial int, _ uint64, _ uint64) (float64, error) { return float64(trial * 37 % 64), nil }
		p.next = func(p *Plan, h *History) (Step, error) {
			step, err := p.asha(h)
			for _, o := range step.Orders {
				if here := h.at(max(o.Rung-1, 0)); o.Rung > 0 && !slices.ContainsFunc(here[:len(here)/4], func(r *Rung) bool { return r.Trial == o.Trial }) {
					t.Errorf("trial %d was promoted from rung %d, where it is not among the best quarter of %d", o.Trial, o.Rung-1, len(here))
				}
			}
			return step, err
		}
		play(t, p, h, score, jobs, pick)
		got := heights(h)
		if got[0] != 64 || got[1] < 16 || got[2] < 4 || got[3] < 1 {
			t.Errorf("with %d jobs rungs have %v trials", jobs, got)
		}
		if best := h.Best()[0]; best.Number*37%64 != 63 {
			t.Errorf("with %d jobs the best is trial %d", jobs, best.Number)
		}
	}
}

func TestMedian_EndsWhatIsBelow(t *testing.T) {
	t.Parallel()
	c := config(t, func(c *Config) { c.Method, c.Trials = Median, 6 })
	p, err := NewPlan(c, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := NewHistory(c)
	values := []float64{5, 4, 6, 1, 9, 2}
	play(t, p, h, func(trial int, _ uint64, _ uint64) (float64, error) { return values[trial], nil }, 1, first)
	for i, want := range []int{4, 4, 4, 1, 4, 1} { // the first three have no median to be below
		if got := len(h.Trials[i].Rungs); got != want {
			t.Errorf("trial %d came to %d rungs, want %d", i, got, want)
		}
	}
}

// The median is of the values of all rungs of that height that ended before, in whatever order trials end.
func TestMedian_IsOfWhatEndedBefore(t *testing.T) {
	t.Parallel()
	c := config(t, func(c *Config) { c.Method, c.Trials = Median, 200 })
	p, err := NewPlan(c, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	h, ended, judged := NewHistory(c), map[int][]float64{}, 0
	look := func(r *Rung) {
		before := slices.Sorted(slices.Values(ended[r.Rung]))
		if n := len(before); n > 0 {
			if want := (before[(n-1)/2] + before[n/2]) / 2; r.others != n || r.median != want {
				t.Fatalf("trial %d at rung %d: median %g of %d, want %g of %d", r.Trial, r.Rung, r.median, r.others, want, n)
			}
			judged++
		}
		value, _ := r.Value()
		ended[r.Rung] = append(before, value)
	}
	known := map[[2]int]bool{}
	p.next = func(p *Plan, h *History) (Step, error) {
		for i := range h.Trials {
			for k := range h.Trials[i].Rungs {
				if r := &h.Trials[i].Rungs[k]; r.Done() && !known[[2]int{i, k}] {
					known[[2]int{i, k}] = true
					look(r)
				}
			}
		}
		return p.median(h)
	}
	turn := 0
	play(t, p, h, func(trial int, _ uint64, _ uint64) (float64, error) { return float64(trial * 37 % 101), nil }, 4, func(n int) int { turn++; return turn * 7 % n })
	if judged < 100 {
		t.Errorf("%d rungs were judged", judged)
	}
}

func TestPlan_ConfirmsWithFreshSeeds(t *testing.T) {
	t.Parallel()
	c := config(t, func(c *Config) { c.Trials, c.Seeds, c.Confirm = 4, 3, Confirm{2, 5} })
	p, err := NewPlan(c, 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := NewHistory(c)
	play(t, p, h, func(trial int, _ uint64, _ uint64) (float64, error) { return float64(trial), nil }, 2, first)
	if len(h.Confirmed) != 2 || h.Confirmed[0].Trial != 3 || h.Confirmed[1].Trial != 2 {
		t.Fatalf("confirmed %+v", h.Confirmed)
	}
	if got := h.Confirmed[0].Seeds; !slices.Equal(got, []uint64{13, 14, 15, 16, 17}) {
		t.Errorf("with the seeds %v", got)
	}
	if h.Confirmed[0].Until != c.EnvSteps || h.EnvSteps() != 4*3*c.EnvSteps {
		t.Errorf("until %d; the search made %d env steps", h.Confirmed[0].Until, h.EnvSteps())
	}

	// An added point is tried although the grid's end was reached, and confirmed where it is better.
	if err := h.Add(&Record{Point: Point{"a.rate": 0.01, "b.size": int64(2)}}); err != nil {
		t.Fatal(err)
	}
	play(t, p, h, func(trial int, _ uint64, _ uint64) (float64, error) { return float64(trial), nil }, 2, first)
	if len(h.Trials) != 5 || h.Trials[4].Set["a.rate"] != 0.01 || len(h.Confirmed) != 3 || h.Confirmed[2].Trial != 4 {
		t.Errorf("%d trials, confirmed %d", len(h.Trials), len(h.Confirmed))
	}
}

func TestHistory_FailuresCostTheirTrialAndThreeInARowEndTheSearch(t *testing.T) {
	t.Parallel()
	c := config(t, func(c *Config) { c.Method, c.Trials = Halving, 16 })
	p, err := NewPlan(c, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := NewHistory(c)
	play(t, p, h, func(trial int, _ uint64, _ uint64) (float64, error) {
		if trial%2 == 0 {
			return 0, fmt.Errorf("a pole broke at %d", trial)
		}
		return float64(trial), nil
	}, 1, first)
	if got := heights(h); !slices.Equal(got, []int{16, 4, 1, 1}) || h.Best()[0].Number != 15 || h.Ended() != "" {
		t.Errorf("rungs have %v trials, ended by %q", got, h.Ended())
	}
	for i := range h.Trials {
		if t2 := &h.Trials[i]; t2.Failed() != (i%2 == 0) || t2.Failed() && len(t2.Rungs) > 1 {
			t.Errorf("trial %d: %q after %d rungs", i, t2.Error(), len(t2.Rungs))
		}
	}

	h = NewHistory(c)
	step, err := p.Next(h)
	if err != nil || h.Add(&Record{Orders: step.Orders}) != nil {
		t.Fatal(err)
	}
	fails := func(trial int, why string) {
		t.Helper()
		o := Outcome{Trial: trial, Seed: 1}
		o.Failed(fmt.Errorf("%s", why))
		if err := h.Add(&Record{Outcome: &o}); err != nil {
			t.Fatal(err)
		}
	}
	fails(0, "learning_rate = 0.5 broke a pole")
	fails(1, "another cause")
	fails(2, "learning_rate = 0.25 broke a pole")
	fails(3, "learning_rate = 1e-05 broke a pole")
	if h.Ended() != "" {
		t.Error("two in a row ended the search")
	}
	fails(4, "learning_rate = 3 broke a pole")
	if h.Ended() == "" {
		t.Error("three in a row did not end the search")
	}
	open := h.Open()
	if err := h.Add(&Record{Retry: true}); err != nil || h.Open() != open+3 || h.Ended() != "" || len(h.Owed()) != h.Open() {
		t.Errorf("after a retry %d are open, %d were: %v", h.Open(), open, err)
	}
}

func TestConfig_NamesItsErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no space":    {func(c *Config) { c.Space = nil }, "`space` is missing: name what is searched"},
		"no bounds":   {func(c *Config) { c.Space["a.rate"] = Dim{} }, "`a.rate` has neither both bounds nor choices"},
		"turned":      {func(c *Config) { c.Space["a.rate"] = bounds(2, 1, "") }, "`a.rate` is from 2 to 1: `from` must be below `to`"},
		"log of 0":    {func(c *Config) { c.Space["a.rate"] = bounds(0, 1, "log") }, "begins at 0, and a logarithm needs more than 0"},
		"one minus 1": {func(c *Config) { c.Space["a.rate"] = bounds(0.5, 1, "one_minus") }, "ends at 1, and the scale one_minus needs less than 1"},
		"one choice":  {func(c *Config) { c.Space["a.rate"] = Dim{Choices: []any{1.5}} }, "has 1 to choose from"},
		"twice":       {func(c *Config) { c.Space["a.rate"] = Dim{Choices: []any{1.5, 1.5}} }, "has the choice 1.5 twice"},
		"table":       {func(c *Config) { c.Space["a.rate"] = Dim{Choices: []any{map[string]any{}, 1.5}} }, "a choice that cannot be written"},
		"halves":      {func(c *Config) { d := bounds(0.5, 2, ""); d.Integer = true; c.Space["a.rate"] = d }, "takes whole numbers, and is from 0.5 to 2"},
		"method":      {func(c *Config) { c.Method = "halvin" }, `is "halvin": did you mean "halving"?`},
		"trials":      {func(c *Config) { c.Trials = 0 }, "`trials` is missing"},
		"few trials":  {func(c *Config) { c.Method, c.Trials = ASHA, 63 }, "`trials` is 63: with 4 rungs and one trial in 4 going on, none would make all of its env steps: ask for 64 trials"},
		"rung":        {func(c *Config) { c.Method, c.Rungs.Least = ASHA, 64_001 }, "`rungs.least` is 64001, and a whole trial makes 64000 env steps"},
		"grid":        {func(c *Config) { c.Sampler = Grid }, "`a.rate` has bounds, and a grid takes single values: write grid = 5"},
		"huge grid": {func(c *Config) {
			d := bounds(1, 2, "")
			d.Grid = 10_000
			c.Trials, c.Space = 0, map[string]Dim{"a": d, "b": d}
		}, "has a grid of more than 10000 trials"},
		"no steps":   {func(c *Config) { c.EnvSteps = 0 }, "`env_steps` is missing"},
		"no program": {func(c *Config) { c.Method = ByProgram }, "`program` is missing"},
		"no use":     {func(c *Config) { c.Program, c.Sampler = []string{"x"}, Random }, "`program` is for sampler or method"},
		"asked once": {func(c *Config) { c.Program, c.Method = []string{"x"}, ASHA }, "`sampler` is program, which learns of each trial once"},
		"confirm":    {func(c *Config) { c.Confirm.Seeds = 1 }, "`confirm.seeds` is 1, must be 2 to 1000"},
	} {
		c := Default()
		c.Space = map[string]Dim{"a.rate": bounds(1e-4, 1e-1, "log")}
		c.Trials, c.EnvSteps, c.Rungs.Least = 64, 64_000, 1000
		test.change(&c)
		err := c.Complete(0)
		list := table.All(err)
		if err == nil || len(list) == 0 || !strings.Contains(list[0].Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}

func TestPoint_ComesBackFromItsJSON(t *testing.T) {
	t.Parallel()
	p := Point{"a": 1.0, "b": int64(1), "c": "x<\"y", "d": []any{int64(64), 0.5, true}, "e": 1e-30}
	b, err := p.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"a":1.0,"b":1,"c":"x\u003c\"y","d":[64, 0.5, true],"e":1e-30}`; string(b) != want {
		t.Errorf("%s, want %s", b, want)
	}
	var again Point
	if err := again.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%#v", again), fmt.Sprintf("%#v", p); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// FuzzHistory folds any lines: what is taken can be written and read again, and the plan has an answer.
func FuzzHistory(f *testing.F) {
	f.Add([]byte(`{"time":"2026-01-01T00:00:00Z","orders":[{"trial":0,"rung":0,"until":1000,"seeds":[1],"set":{"a.rate":0.01,"b.size":2}}]}
{"time":"2026-01-01T00:00:01Z","outcome":{"trial":0,"rung":0,"seed":1,"env_steps":1024,"value":3.5,"wall_seconds":1}}
{"time":"2026-01-01T00:00:01Z","trials":20}
{"time":"2026-01-01T00:00:01Z","judgment":{"trial":0,"rung":0,"prune":true}}
{"time":"2026-01-01T00:00:01Z","point":{"a.rate":0.01,"b.size":1}}`))
	f.Add([]byte(`{"time":"2026-01-01T00:00:00Z","orders":[{"trial":0,"confirm":true,"until":1,"seeds":[1]}]}`))
	f.Add([]byte(`{"retry":true}`))
	f.Fuzz(func(t *testing.T, lines []byte) {
		for _, method := range []string{None, Halving, ASHA, Median} {
			c := config(t, func(c *Config) { c.Method, c.Trials, c.Confirm.Top = method, 64, 2 })
			p, err := NewPlan(c, 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			h := NewHistory(c)
			for line := range strings.SplitSeq(string(lines), "\n") {
				r, err := ReadRecord([]byte(line))
				if err != nil || h.Add(r) != nil {
					return
				}
				text, err := r.Line()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := ReadRecord(text); err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				if owed := len(h.Owed()); owed != h.Open() {
					t.Fatalf("%d runs are owed, %d are open", owed, h.Open())
				}
				if _, err := p.Next(h); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
