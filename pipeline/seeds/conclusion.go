package seeds

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// Conclusion is the result of a set of seeds, as in the last line of JSON.
type Conclusion struct {
	Event       string         `json:"event"` // end
	Set         string         `json:"set"`
	Folder      string         `json:"folder"`
	Ended       int            `json:"ended"`
	Failed      int            `json:"failed"`
	Judged      int            `json:"judged"` // that ended with an evaluation
	Seeds       []runs.SeedRun `json:"seeds"`
	Summary     Summary        `json:"summary"` // of the evaluations
	WallSeconds float64        `json:"wall_seconds"`
}

// Conclude sums up the set in a folder that was trained for so long.
func Conclude(s *runs.SetInfo, dir string, took time.Duration) *Conclusion {
	scores, ended, failed := Results(s)
	c := &Conclusion{Event: "end", Set: s.ID(), Folder: dir, Ended: ended, Failed: failed, Judged: len(scores), Seeds: s.Seeds, WallSeconds: took.Seconds()}
	if len(scores) > 0 {
		c.Summary = Summarize([][]float64{scores}, Options{})
	}
	return c
}

// Greedy reports whether the evaluations that are summed up judged the most probable actions.
func (c *Conclusion) Greedy() bool {
	return slices.ContainsFunc(c.Seeds, func(s runs.SeedRun) bool { return s.Judged == runs.JudgedGreedy })
}

// Text describes the conclusion.
func (c *Conclusion) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %s ended, %d failed, %.2f s; set %s\n", c.Ended, text.Count(len(c.Seeds), "seed"), c.Failed, c.WallSeconds, c.Folder)
	if c.Judged == 0 {
		return b.String()
	}
	s := &c.Summary
	fmt.Fprintf(&b, "mean   %s (%s)\nmedian %s (%s)\nIQM    %s (%s)  95 %% intervals over %s\n", text.Returns(s.Mean.Value), s.Mean.Interval(),
		text.Returns(s.Median.Value), s.Median.Interval(), text.Returns(s.IQM.Value), s.IQM.Interval(), text.Count(c.Judged, "seed"))
	return b.String()
}
