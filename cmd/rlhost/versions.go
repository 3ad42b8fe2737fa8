package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// storedModule is the path of a stored module in a run's pipeline.toml.
var storedModule = regexp.MustCompile(`(?m)^use = "(?:\./)?plugins/([0-9a-f]{64})\.wasm"$`)

// wholeModules checks that the modules which the run's own folder keeps are what was stored there.
func (t *training) wholeModules() error {
	src, err := t.run.Pipeline()
	if err != nil {
		return err
	}
	for _, found := range storedModule.FindAllStringSubmatch(string(src), -1) {
		_, err := t.run.Stored(found[1])
		if errors.Is(err, fs.ErrNotExist) {
			return fail(exitPlugin, fmt.Errorf("%s: error[E012]: the module is gone\n  help: put the module with that SHA-256 in its place, or go on with another one: --set env.NAME.use=FILE",
				t.run.ModulePath(found[1])))
		}
		if err != nil {
			return fail(exitPlugin, fmt.Errorf("error[E051]: %w", err))
		}
	}
	return nil
}

// swappedSince tells what was changed after the checkpoint that the run goes on from, if anything was: what runs from
// there on is another version than it was then.
func (t *training) swappedSince() string {
	list, err := t.run.Changes()
	if err != nil {
		return "what was changed while it ran is not known: " + err.Error()
	}
	for _, c := range list {
		made := c.Step == runs.StepCommitted || c.Step == runs.StepBack
		if made && c.PolicyVersion >= t.before.PolicyVersion {
			return fmt.Sprintf("after this checkpoint came a %s%s (change %d)", c.What, ofComponent(c.Component), c.Number)
		}
	}
	return ""
}

func ofComponent(name string) string {
	if name == "" {
		return ""
	}
	return " of " + name
}

// tellVersions tells which versions run that were swapped in, and which of two where the run was killed in between.
func (t *training) tellVersions() error {
	list, err := t.run.Changes()
	if err != nil || len(list) == 0 {
		return nil // what cannot be read has been told
	}
	newest := map[string]*runs.Change{}
	var order []string
	for i := range list {
		c := &list[i]
		if c.Component == "" || c.New == nil || c.Step != runs.StepCommitted && c.Step != runs.StepBack {
			continue
		}
		if newest[c.Component] == nil {
			order = append(order, c.Component)
		}
		newest[c.Component] = c
	}
	for _, name := range order {
		c := newest[name]
		v := control.Version(*c.New)
		t.notice("%s runs %s, since the %s at %d env steps", name, versionText(&v), c.What, c.EnvStep)
	}
	if text := t.inBetween(list); text != "" {
		t.notice("%s", text)
	}
	last := &list[len(list)-1]
	return t.noteResume(last.Number)
}

// inBetween tells which of two versions the folder has, where the run was killed while it changed from one to the other.
func (t *training) inBetween(list []runs.Change) string {
	last := &list[len(list)-1]
	for i := len(list) - 1; i >= 0 && last.Step == runs.StepNoted; i-- {
		last = &list[i]
	}
	if last.Step != runs.StepBegin {
		return ""
	}
	src, err := t.run.Pipeline()
	if err != nil {
		return ""
	}
	now, which, v := fmt.Sprintf("%x", sha256.Sum256(src)), "the version before", last.Old
	if now == last.After {
		which, v = "the new version", last.New
	}
	text := fmt.Sprintf("the run was killed during a %s%s: it goes on with %s", last.What, ofComponent(last.Component), which)
	if v != nil {
		text += ", " + filepath.Base(v.File)
	}
	return text
}

// noteResume adds to the run's events that it went on. A line that cannot be written is told and no reason to stop.
func (t *training) noteResume(number uint64) error {
	err := t.run.Note(runs.Change{Step: runs.StepResumed, Number: number, What: "resume", EnvStep: t.before.EnvSteps, PolicyVersion: t.before.PolicyVersion})
	if err != nil {
		t.logger().Warn("the run's events lack a line", "error", err)
	}
	return nil
}
