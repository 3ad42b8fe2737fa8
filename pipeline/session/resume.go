package session

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// resume opens the run to continue: its own pipeline, with overrides.
func (s *Session) resume() (err error) {
	if err := s.run.Lock(); err != nil {
		return &Error{Kind: Usage, Err: err}
	}
	if s.before, err = newest(s.run); err != nil {
		return err
	}
	s.at = s.before
	s.openLog()
	if err := s.takeBackUnproven(); err != nil {
		return err
	}
	if err := s.wholeModules(); err != nil {
		return err
	}
	g, err := ownPipeline(s.run, s.o.Sets, s.o.Parts)
	if err != nil {
		return err
	}
	if len(g.Warnings) > 0 {
		s.tell(Warned{g.Warnings})
	}
	s.graph = g
	if err := s.findLeading(); err != nil {
		return err
	}
	s.keep()
	return countAsLeading(s)
}

// countAsLeading makes the checkpoint that the run continues from report the policy that leads now: another one may have led.
func countAsLeading(s *Session) error {
	state, ok := s.before.Components[s.learner]
	if !ok || len(learnings(s.graph)) < 2 {
		return nil
	}
	var err error
	s.before.PolicyVersion, s.before.EnvSteps, err = progressOf(s.o.Parts, state)
	s.at = s.before
	return err
}

// ownPipeline reads the pipeline that a run was started with.
func ownPipeline(run *runs.Run, sets []string, parts *graph.Parts) (*graph.Graph, error) {
	src, err := run.Pipeline()
	if err != nil {
		return nil, err
	}
	if interpreter := run.Info().Python; interpreter != "" && parts.EnvPluginsOf != nil {
		parts.EnvPlugins = parts.EnvPluginsOf(interpreter)
	}
	g, err := graph.Parse(filepath.Join(run.Dir, runs.PipelineFile), src, graph.ParseOptions{Sets: sets, Parts: parts, Expanded: true})
	return g, BuildError(err)
}

// newest reads the newest checkpoint of a run.
func newest(run *runs.Run) (runs.Checkpoint, error) {
	c, err := run.Load(runs.Latest)
	if errors.Is(err, runs.ErrNotFound) {
		return c, &Error{Kind: Usage, Err: err}
	}
	return c, err
}

// changedSince lists the plugins that are no longer the files that a run was started with. now has their hashes by name.
func changedSince(info runs.Info, now map[string]string) []string {
	var names []string
	for use, hash := range now {
		if before, known := info.Plugins[use]; known && before != hash {
			names = append(names, fmt.Sprintf("%s (%.8s, it was %.8s)", use, hash, before))
		}
	}
	slices.Sort(names)
	return names
}

// exactness says whether the run continues as if it had not been interrupted, and if not, why not.
func (s *Session) exactness(plugins map[string]string, kernels string) (exact bool, why string) {
	info := s.run.Info()
	if names := changedSince(info, plugins); len(names) > 0 {
		why = "changed since the run began: " + strings.Join(names, ", ")
		if strings.HasPrefix(s.before.WhyNotExact, newEpisodes) {
			why += "; " + s.before.WhyNotExact
		}
		return false, why
	}
	if info.Kernel != kernels {
		return false, fmt.Sprintf("it began with kernels %s and goes on with %s", info.Kernel, kernels)
	}
	if since := s.swappedSince(); since != "" {
		return false, since
	}
	return s.before.Exact, s.before.WhyNotExact
}

// withoutEpisodes keeps a run's learning and counts and all state that outlives episodes, and drops the episodes under way.
func (s *Session) withoutEpisodes(states map[string]component.State) map[string]component.State {
	kept := map[string]component.State{}
	for name, state := range states {
		if part, ok := state.Lasting(); ok {
			kept[name] = part
		}
	}
	for _, c := range s.graph.Components {
		if state, ok := states[c.Name]; ok && slices.Contains([]string{players.KindLearner, kindRunner, graph.KindFrozen, graph.KindPool}, c.Kind) {
			kept[c.Name] = state
		}
	}
	return kept
}

// storedModule is the path of a stored module in a run's pipeline.toml.
var storedModule = regexp.MustCompile(`\buse = "(?:\./)?plugins/([0-9a-f]{64})\.wasm"`)

// storedData is the path of a stored folder of data in a run's pipeline.toml.
var storedData = regexp.MustCompile(`\bdata = "(?:\./)?plugins/([0-9a-f]{64})"`)

// wholeModules checks that the modules and folders of data in the run's own folder are undamaged.
func (s *Session) wholeModules() error {
	src, err := s.run.Pipeline()
	if err != nil {
		return err
	}
	for _, found := range storedModule.FindAllStringSubmatch(string(src), -1) {
		_, err := s.run.Stored(found[1])
		if errors.Is(err, fs.ErrNotExist) {
			return &Error{Kind: Plugin, Err: fmt.Errorf("%s: error[E012]: the module is gone\n  help: put the module with that SHA-256 in its place, or go on with another one: --set env.NAME.use=FILE",
				s.run.ModulePath(found[1]))}
		}
		if err != nil {
			return &Error{Kind: Plugin, Err: fmt.Errorf("error[E051]: %w", err)}
		}
	}
	for _, found := range storedData.FindAllStringSubmatch(string(src), -1) {
		_, err := s.run.StoredData(found[1])
		if errors.Is(err, fs.ErrNotExist) {
			return &Error{Kind: Plugin, Err: fmt.Errorf("%s: error[E092]: the folder of data is gone\n  help: put the folder with that digest in its place, or go on with another one: --set env.NAME.data=DIR",
				s.run.DataPath(found[1]))}
		}
		if err != nil {
			return &Error{Kind: Plugin, Err: fmt.Errorf("error[E092]: %w", err)}
		}
	}
	return nil
}

// swappedSince describes the changes after the checkpoint that the run continues from, if any, or one before it of which the run's events
// lack the line: the run then continues with other versions than the checkpoint's.
func (s *Session) swappedSince() string {
	list, err := s.run.Changes()
	if err != nil {
		return "what was changed while it ran is not known: " + err.Error()
	}
	for _, c := range list {
		if madeBy(&c) && c.Number > s.before.Change {
			text := "after this checkpoint came a " + c.What
			if c.Component != "" {
				text += " of " + c.Component
			}
			return fmt.Sprintf("%s (change %d)", text, c.Number)
		}
	}
	if made := newestMade(list); made < s.before.Change {
		return fmt.Sprintf("this checkpoint has change %d, of which the run's events lack the end", s.before.Change)
	}
	return ""
}

// newestMade returns the number of the newest change that was made, 0 if none.
func newestMade(list []runs.Change) (number uint64) {
	for i := range list {
		if madeBy(&list[i]) {
			number = max(number, list[i].Number)
		}
	}
	return number
}

// madeBy reports whether a line of the events says that another version ran from there on.
func madeBy(c *runs.Change) bool { return c.Step == runs.StepCommitted || c.Step == runs.StepBack }

// describeResume reports where the run continues from, and notes it in its description and its events.
func (s *Session) describeResume(exact bool, why string) error {
	e := Resumed{Run: s.run.ID(), EnvSteps: s.before.EnvSteps, PolicyVersion: s.before.PolicyVersion, Exact: exact, Why: why, Unproven: s.unproven}
	list, err := s.run.Changes() // an unreadable file is reported where commands are served
	if err == nil && len(list) > 0 {
		s.change = newestMade(list)
		e.Swapped = newestVersions(list)
		s.interrupted(&e, list)
	}
	s.tell(e)
	if err == nil && len(list) > 0 {
		err := s.run.Note(runs.Change{Step: runs.StepResumed, Number: list[len(list)-1].Number, What: "resume", EnvStep: e.EnvSteps, PolicyVersion: e.PolicyVersion})
		if err != nil { // no reason to stop
			s.log.Warn("the run's events lack a line", "error", err)
		}
	}
	return s.run.Update(func(i *runs.Info) {
		i.State, i.Reason, i.Ended = runs.Running, "", nil
		i.Resumes = append(i.Resumes, runs.Resume{
			At: time.Now().UTC(), PolicyVersion: e.PolicyVersion, EnvSteps: e.EnvSteps, Exact: exact, Why: why,
		})
	})
}

// newestVersions returns the last version swapped in for each component, in the order of their first changes.
func newestVersions(list []runs.Change) []Swap {
	var swaps []Swap
	for i := range list {
		c := &list[i]
		if c.Component == "" || c.New == nil || !madeBy(c) {
			continue
		}
		swap := Swap{Component: c.Component, Version: control.Version(*c.New), What: c.What, EnvStep: c.EnvStep}
		at := slices.IndexFunc(swaps, func(x Swap) bool { return x.Component == c.Component })
		if at < 0 {
			swaps = append(swaps, swap)
		} else {
			swaps[at] = swap
		}
	}
	return swaps
}

// interrupted finds which of two versions the folder has, where the run was killed while it changed from one to the other.
func (s *Session) interrupted(e *Resumed, list []runs.Change) {
	last := &list[len(list)-1]
	for i := len(list) - 1; i >= 0 && last.Step == runs.StepNoted; i-- {
		last = &list[i]
	}
	if last.Step != runs.StepBegin {
		return
	}
	src, err := s.run.Pipeline()
	if err != nil {
		return
	}
	e.Interrupted, e.Now = last, last.Old
	if e.NewRuns = textHash(src) == last.After; e.NewRuns {
		e.Now = last.New
	}
}

// newEpisodes begins the reason why a run whose saved episodes are of no use does not continue exactly.
const newEpisodes = "new episodes begin, because those that were saved do not fit: "
