package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/rlhost/rlhost/internal/probe"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// probesName is the name of the probes' result, and the word that selects them alone.
const probesName = "probes"

// probesResult is the result of trainings on the probes.
type probesResult struct {
	made
	EnvSteps  int        `json:"env_steps"`
	Tolerance float64    `json:"tolerance"` // of an error
	Rows      []probeRow `json:"rows"`
}

// probeRow is one number that is known of a probe, as it was learned in one mode.
type probeRow struct {
	Probe   string    `json:"probe"`
	About   string    `json:"about"`
	Mode    string    `json:"mode"`
	What    string    `json:"what"`
	Theory  float64   `json:"theory"`
	Learned []float64 `json:"learned"` // one for each seed, from 1 on
	Mean    float64   `json:"mean"`    // of them
	Error   float64   `json:"error"`   // of the mean, as a part of the theory
}

// trainProbes trains on every probe in every mode with seeds, and once more with twice as many others where a number was
// missed: in asynchronous modes each training is another one.
func trainProbes(ctx context.Context, o options, seeds int) (*probesResult, error) {
	host := runs.ThisHost()
	r := &probesResult{EnvSteps: probe.EnvSteps, Tolerance: probe.Tolerance}
	r.Command, r.Processor, r.CPUs, r.Kernels = "go run ./bench/learn -only "+probesName+" train", host.CPU, host.CPUs, builtin.Kernels()
	var all []trained
	for _, p := range probe.All() {
		for _, m := range probe.Modes() {
			all = append(all, trained{&p, m, len(r.Rows)})
			for _, k := range p.Known {
				r.Rows = append(r.Rows, probeRow{Probe: p.Name, About: p.About, Mode: m.Name, What: k.What, Theory: k.Theory})
			}
		}
	}
	if err := r.train(ctx, o, all, seeds); err != nil {
		return r, err
	}
	all = slices.DeleteFunc(all, func(t trained) bool { return !slices.ContainsFunc(t.rows(r), r.misses) })
	return r, r.train(ctx, o, all, 2*seeds)
}

// trained is a probe in a mode, whose rows begin at first.
type trained struct {
	probe *probe.Probe
	mode  probe.Mode
	first int
}

func (t *trained) rows(r *probesResult) []probeRow {
	return r.Rows[t.first : t.first+len(t.probe.Known)]
}

// train trains with so many more seeds.
func (r *probesResult) train(ctx context.Context, o options, list []trained, more int) error {
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		errs []error
		free = make(chan struct{}, o.jobs)
	)
	for _, t := range list {
		rows := t.rows(r)
		before := len(rows[0].Learned)
		for i := range rows {
			rows[i].Learned = append(rows[i].Learned, make([]float64, more)...)
		}
		for seed := before; seed < before+more; seed++ {
			all.Go(func() {
				free <- struct{}{}
				defer func() { <-free }()
				found, err := t.probe.Train(ctx, t.mode, uint64(seed+1))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					errs = append(errs, fmt.Errorf("probe %s, %s, seed %d: %w", t.probe.Name, t.mode.Name, seed+1, err))
				}
				for i, v := range found {
					rows[i].Learned[seed] = v
				}
			})
		}
	}
	all.Wait()
	for i := range r.Rows {
		r.Rows[i].judge()
	}
	return errors.Join(errs...)
}

func (r *probeRow) judge() {
	sum := 0.0
	for _, v := range r.Learned {
		sum += v
	}
	r.Mean = sum / float64(len(r.Learned))
	r.Error = math.Abs(r.Mean-r.Theory) / math.Abs(r.Theory)
}

func (r *probesResult) misses(row probeRow) bool { return !(row.Error <= r.Tolerance) }

// missed returns an error for every number that was not learned well enough, nil if there is none.
func (r *probesResult) missed() error {
	var errs []error
	for _, row := range r.Rows {
		if r.misses(row) {
			errs = append(errs, fmt.Errorf("probe %s, %s: %s = %.4f, theory %.4f: %.2f %%, the bar is %g %%", row.Probe, row.Mode, row.What,
				row.Mean, row.Theory, 100*row.Error, 100*r.Tolerance))
		}
	}
	return errors.Join(errs...)
}

// worst is the largest error.
func (r *probesResult) worst() (most float64) {
	for _, row := range r.Rows {
		most = max(most, row.Error)
	}
	return most
}

// line is the result for people, as test prints it.
func (r *probesResult) line() string {
	return fmt.Sprintf("%d known values of probes: largest error %.2f %%, bar %g %%", len(r.Rows), 100*r.worst(), 100*r.Tolerance)
}

// readProbes returns the result that was written before, nil if there is none.
func readProbes(dir string) (*probesResult, error) {
	r := &probesResult{}
	err := readJSON(dir, probesName, r)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return r, err
}

// table is a row for each number, a column for each mode.
func (r *probesResult) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nProbes are environments whose values and best policies follow from theory.\n"+
		"γ is 0.9, and the coefficient of an entropy bonus 0.5, or 0.05 for boxes.\n"+
		"Numbers are means of %d seeds of %d env steps, three times as many where these missed the bar.\n"+
		"In brackets is the error in %%: the bar is %g %%, the largest error %.2f %%.\n\n",
		len(r.Rows[0].Learned), r.EnvSteps, 100*r.Tolerance, 100*r.worst())
	var modes, rows []string
	cells := map[string][]string{}
	for _, row := range r.Rows {
		of := fmt.Sprintf("| %s: %s | %s | %.4f ", row.Probe, row.About, row.What, row.Theory)
		if len(rows) == 0 || of == rows[0] {
			modes = append(modes, row.Mode)
		}
		if cells[of] == nil {
			rows = append(rows, of)
		}
		cells[of] = append(cells[of], fmt.Sprintf("%.4f (%.2f)", row.Mean, 100*row.Error))
	}
	fmt.Fprintf(&b, "| probe | what | theory | %s |\n|---|---|---|%s\n", strings.Join(modes, " | "), strings.Repeat("---|", len(modes)))
	for _, of := range rows {
		fmt.Fprintf(&b, "%s| %s |\n", of, strings.Join(cells[of], " | "))
	}
	b.WriteString(origins + r.origin("probes"))
	return b.String()
}
