package session

import (
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/control"
)

// envNotes say what another version of the environments means for what has been learned and counted so far.
func envNotes(a *ask, parts []part) []string {
	for i := range parts {
		p := &parts[i]
		if p.env == "" || a.what == whatRollback && p.canary == nil && p.old == p.new {
			continue
		}
		window := "the window of the mean return counts episodes of the new version alone from here on"
		if a.rules.keepState {
			window = "episodes that were running go on, so the window of the mean return has some of both versions"
		}
		notes := []string{window}
		if c := p.canary; c != nil && differ(c) {
			notes = append(notes, fmt.Sprintf("on the same seeds and actions the returns differ (%.1f, old %.1f): the critic has learned the old ones and "+
				"follows within some datasets, and so does what a wrapper of the environment normalises returns by; the observation normaliser goes on",
				c.New.MeanReturn, c.Old.MeanReturn))
		}
		return notes
	}
	return nil
}

// differ reports whether a trial came to other returns than the version that runs.
func differ(c *control.Canary) bool {
	return math.Abs(c.New.MeanReturn-c.Old.MeanReturn) > 1e-6*math.Max(1, math.Abs(c.Old.MeanReturn))
}
