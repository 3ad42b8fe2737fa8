package runs

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Outcomes of an Entry that no line of the events has by itself.
const (
	OutcomeKept = "kept" // it has passed its probation
	OutcomeOpen = "open" // the run was killed during it: pipeline.toml has one of the two versions
)

// Entry is one change of one component, or another request to the job, from events.jsonl: versions by the names of their files.
type Entry struct {
	Time          time.Time `json:"time"`
	Number        uint64    `json:"change"`
	What          string    `json:"what"`
	Component     string    `json:"component,omitempty"`
	From          string    `json:"from,omitempty"`
	To            string    `json:"to,omitempty"`
	Differences   []string  `json:"differences,omitempty"`
	At            string    `json:"at,omitempty"`
	EnvStep       uint64    `json:"env_step"`
	PolicyVersion uint64    `json:"policy_version"`
	Outcome       string    `json:"outcome"` // a step of a change, OutcomeKept or OutcomeOpen
	Reason        string    `json:"reason,omitempty"`
	UID           int       `json:"uid"`
	Command       []string  `json:"command,omitempty"`
}

// storedPath is the path of a module in a run's folder, by its SHA-256.
var storedPath = regexp.MustCompile(`[^\s"',]*plugins/([0-9a-f]{64})\.wasm`)

// versionPath is the path of a file before the begin of its hash.
var versionPath = regexp.MustCompile(`[^\s"',]*/([^\s"',/]+ \([0-9a-f]{8}\))`)

// History returns the changes of a run, oldest first.
func (r *Run) History() ([]Entry, error) {
	list, err := r.Changes()
	names := map[string]string{}
	for i := range list {
		for _, v := range []*Version{list[i].Old, list[i].New} {
			if v != nil && v.Hash != "" && !storedPath.MatchString(v.File) {
				names[v.Hash] = filepath.Base(v.File)
			}
		}
	}
	named := func(text string) string {
		text = storedPath.ReplaceAllStringFunc(text, func(path string) string {
			hash := storedPath.FindStringSubmatch(path)[1]
			if name := names[hash]; name != "" {
				return name
			}
			return hash[:8] + ".wasm"
		})
		return versionPath.ReplaceAllString(text, "$1")
	}
	var entries []Entry
	for i := range list {
		c := &list[i]
		same := func(e Entry) bool { return e.Number == c.Number }
		switch c.Step {
		case StepSettled:
			for j := range entries {
				if same(entries[j]) && entries[j].Outcome == StepCommitted {
					entries[j].Outcome = OutcomeKept
				}
			}
			continue
		case StepCommitted, StepBack, StepRefused: // the beginning says no more
			entries = slices.DeleteFunc(entries, func(e Entry) bool { return same(e) && e.Outcome == OutcomeOpen })
		}
		e := Entry{
			Time: c.Time, Number: c.Number, What: c.What, Component: c.Component, From: c.Old.named(named), To: c.New.named(named), At: c.At,
			EnvStep: c.EnvStep, PolicyVersion: c.PolicyVersion, Outcome: c.Step, Reason: named(c.Reason), UID: c.UID, Command: c.Command,
		}
		if c.Step == StepBegin {
			e.Outcome = OutcomeOpen
		}
		for _, d := range c.Differences {
			e.Differences = append(e.Differences, named(d))
		}
		entries = append(entries, e)
	}
	return entries, err
}

// named is a version as people know it: the name of its file, and the begin of its hash.
func (v *Version) named(name func(string) string) string {
	if v == nil {
		return ""
	}
	text := filepath.Base(name(v.File))
	if v.Hash != "" {
		text += fmt.Sprintf(" (%.8s)", v.Hash)
	}
	return text
}

// Changed describes a change: from which version to which, else the differences.
func (e *Entry) Changed() string {
	switch {
	case e.From != e.To && e.From != "" && e.To != "":
		return e.From + " → " + e.To
	case len(e.Differences) > 0:
		return strings.Join(e.Differences, "; ")
	}
	return e.To
}
