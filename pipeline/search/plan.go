package search

import (
	"fmt"
	"slices"
)

// Plan is a search: its configuration and what follows from it.
type Plan struct {
	Config *Config
	First  uint64 // seed of the first run of each trial

	sampler Sampler
	next    func(p *Plan, h *History) (Step, error)
}

// Step is what comes next: orders, or the report of a rung to the program. With neither, the search waits for what is under way, or is
// done.
type Step struct {
	Orders []Order
	Report *Trial
	Done   bool
}

// methods decide how far trials are trained.
var methods = map[string]func(p *Plan, h *History) (Step, error){
	None: (*Plan).all, Halving: (*Plan).halving, ASHA: (*Plan).asha, Median: (*Plan).median, ByProgram: (*Plan).byProgram,
}

// NewPlan returns the plan of a complete configuration. The runs of a trial have the seeds from first on. program is asked where the
// configuration has one, else it is nil.
func NewPlan(c *Config, first uint64, program Sampler) (*Plan, error) {
	s, err := newSampler(c, program)
	if err != nil {
		return nil, err
	}
	next := methods[c.Method]
	if next == nil {
		return nil, fmt.Errorf("there is no method %q", c.Method)
	}
	return &Plan{Config: c, First: first, sampler: s, next: next}, nil
}

// Next returns what comes after a history.
func (p *Plan) Next(h *History) (Step, error) {
	if p.Config.Synchronous() && h.Open() > 0 {
		return Step{}, nil
	}
	s, err := p.next(p, h)
	if err != nil || !s.Done {
		return s, err
	}
	if h.Open() > 0 {
		return Step{}, nil
	}
	return p.confirm(h), nil
}

// seeds are the seeds of a trial's runs.
func (p *Plan) seeds() []uint64 { return upFrom(p.First, p.Config.Seeds) }

func upFrom(first uint64, n int) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		list[i] = first + uint64(i)
	}
	return list
}

// confirm orders the best trials again, with seeds that follow on the search's.
func (p *Plan) confirm(h *History) Step {
	var orders []Order
	best := h.Best()
	for _, t := range best[:min(len(best), p.Config.Confirm.Top)] {
		if !slices.ContainsFunc(h.Confirmed, func(r Rung) bool { return r.Trial == t.Number }) {
			orders = append(orders, Order{Trial: t.Number, Confirm: true, Until: p.Config.EnvSteps,
				Seeds: upFrom(p.First+uint64(p.Config.Seeds), p.Config.Confirm.Seeds)})
		}
	}
	return Step{Orders: orders, Done: len(orders) == 0}
}

// begin orders the first rung of up to so many further trials.
func (p *Plan) begin(h *History, most int) (Step, error) {
	var orders []Order
	taken := h.taken
	for number := len(h.Trials); number < h.Total && len(orders) < most; number++ {
		o := Order{Trial: number, Until: p.Config.Stops()[0], Seeds: p.seeds()}
		if taken < len(h.Added) {
			o.Set, o.Added = h.Added[taken], true
			taken++
		} else {
			var err error
			if o.Set, err = p.sampler.Ask(h, number, number-taken); err != nil {
				return Step{}, err
			}
			if err := p.Config.Check(o.Set); err != nil {
				return Step{}, fmt.Errorf("the point of trial %d is not in the space: %w", number, err)
			}
		}
		orders = append(orders, o)
	}
	return Step{Orders: orders}, nil
}

// further orders the next rung of a trial.
func (p *Plan) further(t *Trial) Order {
	rung := len(t.Rungs)
	return Order{Trial: t.Number, Rung: rung, Until: p.Config.Stops()[rung], Seeds: p.seeds()}
}

// atOnce is how many trials begin together.
func (p *Plan) atOnce() int {
	if p.Config.Sampler == ByProgram {
		return p.Config.Batch
	}
	return maxTrials
}

// all lets each trial make all of its env steps.
func (p *Plan) all(h *History) (Step, error) {
	if len(h.Trials) < h.Total {
		return p.begin(h, p.atOnce())
	}
	return Step{Done: true}, nil
}

// halving compares all trials at each rung, and trains the best of them further (Karnin et al. 2013, Jamieson and Talwalkar 2016).
func (p *Plan) halving(h *History) (Step, error) {
	if len(h.Trials) < h.Total {
		return p.begin(h, p.atOnce())
	}
	for rung := range len(p.Config.Stops()) - 1 {
		here := h.at(rung)
		orders := p.promoted(h, here[:max(len(here)/p.Config.Rungs.Factor, min(1, len(here)))])
		if len(orders) > 0 {
			return Step{Orders: orders}, nil
		}
	}
	return Step{Done: true}, nil
}

// promoted orders the next rung of each trial that has a value and has not had the order.
func (p *Plan) promoted(h *History, best []*Rung) (orders []Order) {
	for _, r := range best {
		t := &h.Trials[r.Trial]
		if _, ok := r.Value(); ok && len(t.Rungs) == r.Rung+1 {
			orders = append(orders, p.further(t))
		}
	}
	return orders
}

// asha trains a trial further as soon as it is among the best of all that have come to its rung, and begins another one where none is (Li
// et al. 2018, algorithm 2).
func (p *Plan) asha(h *History) (Step, error) {
	for rung := len(p.Config.Stops()) - 2; rung >= 0; rung-- {
		here := h.at(rung)
		if orders := p.promoted(h, here[:len(here)/p.Config.Rungs.Factor]); len(orders) > 0 {
			return Step{Orders: orders[:1]}, nil
		}
	}
	if len(h.Trials) < h.Total {
		return p.begin(h, 1)
	}
	return Step{Done: h.Open() == 0}, nil
}

// fewest is how many other trials the median is taken of at least.
const fewest = 3

// median trains a trial further unless it is worse than the median of the trials that came to its rung before it.
func (p *Plan) median(h *History) (Step, error) {
	for i := range h.Trials {
		t := &h.Trials[i]
		r := &t.Rungs[len(t.Rungs)-1]
		value, ok := r.Value()
		if !ok || t.Failed() || r.Rung+1 == len(p.Config.Stops()) {
			continue
		}
		if r.others < fewest || !p.Config.Better(r.median, value) {
			return Step{Orders: []Order{p.further(t)}}, nil
		}
	}
	if len(h.Trials) < h.Total {
		return p.begin(h, 1)
	}
	return Step{Done: h.Open() == 0}, nil
}

// byProgram reports each rung to the program, which says whether the trial is trained further.
func (p *Plan) byProgram(h *History) (Step, error) {
	for i := range h.Trials {
		t := &h.Trials[i]
		r := &t.Rungs[len(t.Rungs)-1]
		if _, ok := r.Value(); !ok || t.Failed() || t.Pruned || r.Rung+1 == len(p.Config.Stops()) {
			continue
		}
		if t.Judged <= r.Rung {
			return Step{Report: t}, nil
		}
		return Step{Orders: []Order{p.further(t)}}, nil
	}
	if len(h.Trials) < h.Total {
		return p.begin(h, 1)
	}
	return Step{Done: h.Open() == 0}, nil
}
