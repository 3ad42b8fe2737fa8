package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/pipeline/seeds"
)

// result is the result of a task, as in its file in the folder of results.
type result struct {
	Task      string  `json:"task"`
	Preset    string  `json:"preset"`
	Steps     string  `json:"env_steps"`            // at most
	Bar       float64 `json:"bar"`                  // for the lower end of the interval of the mean return
	Below     bool    `json:"below,omitempty"`      // the task cannot be learned so: the bar is for the upper end
	BySampled bool    `json:"by_sampled,omitempty"` // the bar is for sampled actions, not for the most probable ones
	Published string  `json:"published"`            // figure with its source
	made

	Seeds   []seedResult  `json:"seeds"`
	Greedy  seeds.Summary `json:"greedy"`  // of the final evaluations with the most probable actions
	Sampled seeds.Summary `json:"sampled"` // with sampled ones
}

// made says how to make a result again, and where it was made.
type made struct {
	Command   string `json:"command"`
	Commit    string `json:"commit"` // of rlhost
	Processor string `json:"processor"`
	CPUs      int    `json:"cpus"`
	Kernels   string `json:"kernels"`
}

// origins is the head of the page's tables of origins.
const origins = "\n| result | command | processor, one a training | kernels | rlhost |\n|---|---|---|---|---|\n"

// origin is a row of the page.
func (m *made) origin(of string) string {
	return fmt.Sprintf("| %s | `%s` | %s | %s | %s |\n", of, m.Command, m.Processor, m.Kernels, m.Commit)
}

type seedResult struct {
	Seed       uint64   `json:"seed"`
	Greedy     float64  `json:"greedy"`
	Sampled    float64  `json:"sampled"`
	EnvSteps   uint64   `json:"env_steps"`
	Seconds    float64  `json:"seconds"`
	Reached    *float64 `json:"reached"` // env steps at which the training was first at the bar; null if it never was
	ParamsHash string   `json:"params_hash"`
}

// each returns one number of every seed.
func (r *result) each(of func(*seedResult) float64) []float64 {
	list := make([]float64, len(r.Seeds))
	for i := range r.Seeds {
		list[i] = of(&r.Seeds[i])
	}
	return list
}

// summarize sums the seeds up, by the intervals of this version where the result is of an earlier one.
func (r *result) summarize() {
	r.Greedy = seeds.Summarize([][]float64{r.each(func(s *seedResult) float64 { return s.Greedy })}, seeds.Options{})
	r.Sampled = seeds.Summarize([][]float64{r.each(func(s *seedResult) float64 { return s.Sampled })}, seeds.Options{})
}

// judged returns the evaluations that the bar is for.
func (r *result) judged() *seeds.Summary {
	if r.BySampled {
		return &r.Sampled
	}
	return &r.Greedy
}

// met reports whether the interval of the mean lies on the right side of the bar.
func (r *result) met() bool {
	if r.Below {
		return r.judged().Mean.High < r.Bar
	}
	return r.judged().Mean.Low >= r.Bar
}

// digits returns how many decimals a return of this task is written with.
func (r *result) digits() int { return max(1, 3-int(math.Ceil(math.Log10(math.Abs(r.Bar))))) }

// reached is the median of the env steps to the bar; seeds that never were there count as most.
func (r *result) reached() float64 {
	return median(r.each(func(s *seedResult) float64 {
		if s.Reached == nil {
			return math.Inf(1)
		}
		return *s.Reached
	}))
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// stamp notes the commit.
func (m *made) stamp() error {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return fmt.Errorf("git describe: %w", err)
	}
	m.Commit = strings.TrimSpace(string(out))
	return nil
}

// writeJSON stores a result.
func writeJSON(dir, name string, result interface{ stamp() error }) error {
	if err := result.stamp(); err != nil {
		return err
	}
	b, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".json"), append(b, '\n'), 0o644)
}

// readJSON reads a result that was written before.
func readJSON(dir, name string, into any) error {
	b, err := os.ReadFile(filepath.Join(dir, name+".json"))
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}
