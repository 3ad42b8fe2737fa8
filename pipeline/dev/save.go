package dev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// save is one save, and what becomes of it.
type save struct {
	files []string // absolute
	names []string // as they are shown
	at    time.Time
	gone  []string // names of files that are not there any more

	source  []byte // of the pipeline file
	made    []built
	in      bool // the run has taken it
	before  *control.StatusReply
	reply   control.ReloadReply
	took    time.Duration // from the save to the run's answer
	stepped time.Duration // from the save to the first env step of the new version; 0: not known
	after   *control.StatusReply
}

// save describes the save of files.
func (l *Loop) save(list []string) *save {
	s := &save{files: list, at: time.Now().Add(-quiet)}
	for _, path := range list {
		name := path
		if within(l.dir, path) {
			name, _ = filepath.Rel(l.dir, path) // it is within
		}
		if strings.ContainsFunc(name, unicode.IsControl) {
			name = strconv.Quote(name)
		}
		s.names = append(s.names, name)
		info, err := os.Stat(path)
		switch {
		case err != nil:
			s.gone = append(s.gone, name)
		case time.Since(info.ModTime()) < 5*time.Second && info.ModTime().Before(s.at):
			s.at = info.ModTime()
		}
	}
	return s
}

// prepare reads the pipeline file again where that was saved, and builds what may have changed: all, where a source was saved.
func (l *Loop) prepare(ctx context.Context, s *save, all bool) (err error) {
	if s.source, err = l.read(); err != nil {
		return err
	}
	before := l.builds
	pipelineSaved := slices.Contains(s.files, l.File)
	if pipelineSaved {
		if l.builds, err = l.buildsOf(s.source); err != nil {
			l.builds = before
			return err
		}
		l.watch.expect(l.extra())
	}
	sources := slices.ContainsFunc(s.files, func(path string) bool { return path != l.File && !slices.Contains(l.extra(), path) })
	var due []graph.Build
	for i := range l.builds {
		b := l.builds[i]
		same := func(x graph.Build) bool { return x.Of == b.Of && x.Command == b.Command && x.Output == b.Output }
		if all || sources || !slices.ContainsFunc(before, same) {
			due = append(due, b)
		}
	}
	s.made, err = l.make(ctx, due)
	return err
}

// make runs builds, each command once.
func (l *Loop) make(ctx context.Context, list []graph.Build) (made []built, err error) {
	ran := map[string]bool{}
	for i := range list {
		b := &list[i]
		if b.Command == "" || ran[b.Command] {
			continue
		}
		ran[b.Command] = true
		one, err := run(ctx, b, l.dir)
		if err != nil {
			return made, err
		}
		made = append(made, one)
	}
	return made, nil
}

// reload hands the pipeline file to the run, which takes what differs.
func (l *Loop) reload(ctx context.Context, s *save) error {
	var err error
	if s.before, err = l.look(ctx); err != nil {
		return err
	}
	q := control.ReloadRequest{File: l.File, Source: string(s.source), Sets: l.Sets, Undo: true, Brief: true}
	if err := l.run.do(ctx, control.VerbReload, q, &s.reply); err != nil {
		return err
	}
	s.in, s.took = true, time.Since(s.at)
	return nil
}

// Times that the line of a save waits for the run.
const (
	stepEvery = 2 * time.Millisecond  // how often the env steps are looked at
	firstStep = 10 * time.Second      // for the first step of a new version
	outcome   = 2 * time.Second       // for the checks and the return of a new version
	outEvery  = 50 * time.Millisecond // how often they are looked at
)

// settle waits until the run has stepped a new version, and for a moment for what comes of it. It ends with ctx.
func (l *Loop) settle(ctx context.Context, s *save) {
	if len(s.reply.Swaps) == 0 {
		return
	}
	var base *uint64 // steps are counted when their block is full
	l.until(ctx, stepEvery, firstStep, func(now *control.StatusReply) bool {
		if base == nil {
			base = &now.Steps.Made
		}
		if now.Steps.Made > *base {
			s.stepped = time.Since(s.at)
		}
		return s.stepped > 0
	})
	l.until(ctx, outEvery, outcome, s.knows)
	s.after = l.run.last
}

// knows reports whether the run has made all checks of the new version and has a mean return of it, or has taken it back.
func (s *save) knows(now *control.StatusReply) bool {
	if now.Swaps.RolledBack > s.before.Swaps.RolledBack {
		return whyRolledBack(now) != ""
	}
	for i := range s.reply.Swaps {
		if x := &s.reply.Swaps[i]; x.Envs > 0 && x.Probation > 0 && strings.HasSuffix(x.New.File, ".wasm") && checkedOf(now, x.Component) == "" {
			return false
		}
	}
	return now.MeanReturn != nil || s.before.MeanReturn == nil
}

// checkedOf is what the checks afterwards have found in a component's new version; empty until they have been made.
func checkedOf(now *control.StatusReply, component string) string {
	i := slices.IndexFunc(now.Probation, func(p control.Probation) bool { return p.Component == component })
	if i < 0 {
		return ""
	}
	return now.Probation[i].Checked
}

// until asks for the status until it is right, at most for a time.
func (l *Loop) until(ctx context.Context, every, longest time.Duration, right func(*control.StatusReply) bool) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if now, err := l.run.status(ctx); err != nil || right(now) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// head is how lines about a save begin.
func (s *save) head() string {
	names := s.names
	if len(names) > 3 {
		names = append(slices.Clone(names[:2]), fmt.Sprintf("%d more files", len(names)-2))
	}
	for i, name := range names {
		if slices.Contains(s.gone, name) {
			names = slices.Clone(names)
			names[i] = name + " (deleted)"
		}
	}
	return text.Printable(strings.Join(names, ", ")) + ": "
}

// failed is what is said of a save that the run has not taken.
func (s *save) failed(err error) string {
	reason := err.Error()
	var refused *control.Error
	if errors.As(err, &refused) {
		reason = fmt.Sprintf("error[%s]: %s", refused.Code, refused.Reason)
		if refused.Problems != "" {
			reason = strings.TrimRight(refused.Problems, "\n")
		} else if refused.Help != "" {
			reason += "\n  help: " + refused.Help
		}
	}
	line := s.head()
	if made := builtText(s.made); made != "" {
		line += made + " · "
	}
	return line + "the run continues as it is: " + reason
}

// String is the line of a save that the run has taken.
func (s *save) String() string {
	var parts []string
	if made := builtText(s.made); made != "" {
		parts = append(parts, made)
	}
	if s.in && s.reply.Outcome == control.Unchanged {
		parts = append(parts, "nothing to change: this is what runs")
	}
	parts = append(parts, s.changes()...)
	if s.after != nil {
		parts = append(parts, s.came()...)
	}
	return s.head() + text.Printable(strings.Join(parts, " · "))
}

// changes describes what the run has changed.
func (s *save) changes() (parts []string) {
	for _, c := range s.reply.Changes {
		if c.What != "env" {
			parts = append(parts, fmt.Sprintf("%s %s: %s", c.What, c.Name, c.Text))
		}
	}
	for i := range s.reply.Swaps {
		x := &s.reply.Swaps[i]
		if x.Checked != "" {
			parts = append(parts, x.Checked)
		}
		if x.Envs > 0 {
			parts = append(parts, fmt.Sprintf("%d envs of %s swapped", x.Envs, x.Component))
		}
	}
	switch {
	case s.stepped > 0:
		parts = append(parts, fmt.Sprintf("first step %s after the save", seconds(s.stepped)))
	case s.reply.Outcome == control.Committed:
		parts = append(parts, fmt.Sprintf("in effect %s after the save", seconds(s.took)))
	}
	return parts
}

// came describes what has come of a new version so far.
func (s *save) came() (parts []string) {
	if s.after.Swaps.RolledBack > s.before.Swaps.RolledBack {
		return []string{cmp.Or(whyRolledBack(s.after), "taken back: the previous version runs again")}
	}
	for i := range s.reply.Swaps {
		if text := checkedOf(s.after, s.reply.Swaps[i].Component); text != "" && !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	before, now := s.before.MeanReturn, s.after.MeanReturn
	switch {
	case before != nil && now != nil:
		parts = append(parts, fmt.Sprintf("return %.*f → %.*f", text.Decimals(*before, *now), *before, text.Decimals(*before, *now), *now))
	case before != nil:
		parts = append(parts, fmt.Sprintf("return %s → too few episodes yet", text.Short(*before)))
	}
	return parts
}

// whyRolledBack says why the previous version of a component runs again; empty while the run does not say it yet.
func whyRolledBack(status *control.StatusReply) string {
	for _, c := range status.Components {
		if _, why, ok := strings.Cut(c.Note, "rolled back: "); ok {
			return fmt.Sprintf("taken back, and the previous version of %s runs again: %s", c.Name, why)
		}
	}
	return ""
}

// builtText names what was built.
func builtText(made []built) string {
	var parts []string
	for _, b := range made {
		name := "ran"
		if b.output != "" {
			name = filepath.Base(b.output)
		}
		same := ""
		if !b.other {
			same = ", as it was"
		}
		parts = append(parts, fmt.Sprintf("%s in %s%s", name, seconds(b.took), same))
	}
	if len(parts) == 0 {
		return ""
	}
	return text.Printable("built " + strings.Join(parts, ", "))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
