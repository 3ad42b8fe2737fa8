package session

import (
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/control"
)

// allStarted reports whether every component is past its start, and none is being replaced.
func allStarted(list []control.ComponentStatus) bool {
	return !slices.ContainsFunc(list, func(c control.ComponentStatus) bool {
		return c.State == control.Ready || c.State == control.Replacing
	})
}

// cause tells why the run stands still, if it does.
func (j *Commands) cause(list []control.ComponentStatus) string {
	var paused []string
	for _, c := range list {
		if c.State == control.Paused {
			paused = append(paused, c.Name)
		}
	}
	if text := j.o.Pipeline.Cause(); text != "" || len(paused) == 0 {
		return text
	}
	return "paused by request: " + strings.Join(paused, ", ") + " (rlhost resume ends it)"
}
