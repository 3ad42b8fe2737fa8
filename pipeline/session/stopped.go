package session

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/overrides"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// reasonUnproven is why a version is taken back that was watched when the run ended.
const reasonUnproven = "it was watched when the run ended"

// unproven returns the changes that were on probation when a run ended, the newest first: of each the lines of its components that nothing
// has changed since.
func unproven(list []runs.Change) [][]runs.Change {
	watched := map[string]runs.Change{} // by component
	whole := map[uint64]bool{}          // changes of which a part has been changed again, and that go back as a whole
	for _, c := range list {
		if c.Step == runs.StepSettled {
			for name, w := range watched {
				if w.Number == c.Number {
					delete(watched, name)
				}
			}
		}
		if !madeBy(&c) || c.Component == "" {
			continue
		}
		if w, ok := watched[c.Component]; ok && w.Undo != nil && w.Number != c.Number {
			whole[w.Number] = true
		}
		delete(watched, c.Component)
		if c.Step == runs.StepCommitted && c.Outcome != nil && c.Outcome.Probation > 0 && len(c.Back) > 0 {
			watched[c.Component] = c
		}
	}
	byNumber := map[uint64][]runs.Change{}
	var numbers []uint64
	for _, c := range watched {
		if whole[c.Number] {
			continue
		}
		if byNumber[c.Number] == nil {
			numbers = append(numbers, c.Number)
		}
		byNumber[c.Number] = append(byNumber[c.Number], c)
	}
	slices.SortFunc(numbers, func(a, b uint64) int { return cmp.Compare(b, a) })
	var changes [][]runs.Change
	for _, n := range numbers {
		lines := byNumber[n]
		slices.SortFunc(lines, func(a, b runs.Change) int { return cmp.Compare(a.Component, b.Component) })
		changes = append(changes, lines)
	}
	return changes
}

// takeBackUnproven rolls back the versions that were watched when the run ended: they are unproven.
func (s *Session) takeBackUnproven() error {
	list, err := s.run.Changes()
	if err != nil {
		return nil // an unreadable file is reported where commands are served
	}
	number := uint64(0)
	for i := range list {
		number = max(number, list[i].Number)
	}
	changes := unproven(list)
	if len(changes) == 0 {
		return nil
	}
	if s.graph, err = ownPipeline(s.run, nil, s.o.Parts); err == nil {
		err = s.findLeading()
	}
	if err != nil {
		return err
	}
	for _, lines := range changes {
		way := previous{undo: lines[0].Undo}
		for _, c := range lines {
			way.back = append(way.back, storedHere(s.run, c.Back)...)
		}
		number++
		line := runs.Change{
			Step: runs.StepBack, What: whatFallback, Number: number, Component: lines[0].Component, Reason: reasonUnproven, UID: itself().uid,
			Command: itself().command,
		}
		if err := s.goBack(way.graph(s.graph)); err != nil {
			s.log.Warn("a version that was watched when the run ended runs on, because the one before cannot be brought back", "component", line.Component, "error", err)
			continue
		}
		for _, c := range lines {
			line.Component, line.Old, line.New, line.Wraps = c.Component, c.New, c.Old, c.Wraps
			s.noteStopped(line)
			if c.New != nil {
				s.unproven = append(s.unproven, Swap{Component: c.Component, Version: control.Version(*c.New), What: c.What, EnvStep: c.EnvStep})
			}
		}
	}
	return nil
}

// goBack replaces the pipeline of a stopped run.
func (s *Session) goBack(text string, sets []string) error {
	next, err := parseNext(s.graph, text, sets, s.o.Parts)
	if err != nil {
		return BuildError(err)
	}
	s.graph = next
	written, err := s.text(next)
	if err != nil {
		return err
	}
	return s.run.WritePipeline(written)
}

// noteStopped adds a line to the events of a stopped run.
func (s *Session) noteStopped(c runs.Change) {
	c.EnvStep, c.PolicyVersion = s.before.EnvSteps, s.before.PolicyVersion
	if src, err := s.run.Pipeline(); err == nil {
		c.After = textHash(src)
	}
	if err := s.run.Note(c); err != nil {
		s.log.Warn("the run goes on without a line in its events", "error", err)
	}
}

// storedHere makes overrides name the modules and folders of data where a run has them now: its folder may have been moved.
func storedHere(run *runs.Run, back []string) []string {
	return overrides.Moved(back, func(hash string, folder bool) (string, error) {
		if folder {
			d, err := run.StoredData(hash)
			return d.Path, err
		}
		m, err := run.Stored(hash)
		return m.Path, err
	})
}

// Rollback undoes the last change of a component of a run that is not running: it takes effect once the run is resumed. It locks the run
// until that is closed.
func Rollback(run *runs.Run, parts *graph.Parts, log *slog.Logger, named string) (*control.SwapReply, error) {
	s := newSession(Options{Parts: parts, Log: log, Records: &Records{}})
	s.run = run
	err := run.Lock()
	if err == nil {
		s.before, err = newest(run)
	}
	if err == nil {
		s.graph, err = ownPipeline(run, nil, parts)
	}
	if err == nil {
		err = s.findLeading()
	}
	if err != nil {
		return nil, err
	}
	h := newHistory(&live{commandOptions: commandOptions{Run: run, Parts: parts}, log: s.log})
	if err := h.recall(); err != nil {
		return nil, err
	}
	return s.rollBack(h, named)
}

// rollBack is Rollback with the run's history.
func (s *Session) rollBack(h *history, named string) (*control.SwapReply, error) {
	name, place, wraps := control.SplitWrapper(named)
	g := s.graph
	c := componentNamed(g, name)
	if c == nil {
		return nil, &Error{Kind: Usage, Err: fmt.Errorf("there is no component %q in run %s", name, s.run.ID())}
	}
	named, name = c.Name+strings.TrimPrefix(named, name), c.Name
	way := h.before(named)
	if way == nil {
		return nil, &Error{Kind: Usage, Err: fmt.Errorf("%s has no previous version: it has not been changed in this run", named)}
	}
	line := runs.Change{Number: h.nextNumber(), Step: runs.StepBack, What: whatRollback, Component: name, New: version(way.version)}
	list, err := s.run.Changes()
	if err != nil {
		return nil, err
	}
	for _, x := range newestVersions(list) {
		if x.Component == name {
			line.Old = version(x.Version)
		}
	}
	line.Back = storedHere(s.run, overrides.BackComponent(g, name))
	text, sets := way.graph(g)
	env := g.Env(c.Env)
	if env != nil {
		line.Back = append(storedHere(s.run, overrides.Back(g, changeEnv, env.Name)), line.Back...)
	}
	if wraps {
		if env == nil || place < 0 || place >= len(env.Table.Wrap) || env.Table.In(g.Dir).Wrap[place].Text() != way.wrap.New {
			return nil, &Error{Kind: Usage, Err: fmt.Errorf("%s is not what its last change made of it\n  help: swap in what it was, %s, once the run goes on", named, way.wrap.Old)}
		}
		again, _, _ := env.Table.Rewrapped(place, way.wrap.Old)
		text, sets = g.Resolved(), []string{changeEnv + "." + env.Name + ".wrap=" + again}
		line.Wraps = []runs.Wrap{{Place: place, Old: way.wrap.New, New: way.wrap.Old}}
		line.New, line.Old = &runs.Version{File: way.wrap.Old}, &runs.Version{File: way.wrap.New}
	}
	if err := s.goBack(text, sets); err != nil {
		return nil, fmt.Errorf("%s cannot go back: %w", named, err)
	}
	for _, t := range g.Undo(s.graph) {
		line.Undo = append(line.Undo, runs.Table(t))
	}
	for _, d := range g.TableChanges(s.graph) {
		line.Differences = append(line.Differences, d.What+" "+d.Name+": "+d.Text)
	}
	line.UID, line.Command = os.Getuid(), slices.Clone(os.Args)
	s.noteStopped(line)
	r := &control.SwapReply{Component: named, Outcome: control.RolledBack, EnvStep: s.before.EnvSteps}
	if line.Old != nil {
		r.Old = control.Version(*line.Old)
	}
	if line.New != nil {
		r.New = control.Version(*line.New)
	}
	return r, nil
}
