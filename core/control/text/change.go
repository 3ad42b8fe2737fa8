package text

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/rlhost/rlhost/core/control"
)

// Reload lists the differences, the fate of each version, and the outcome, which begins with done.
func Reload(done string, r *control.ReloadReply) string {
	if r.Outcome == control.Unchanged {
		return "nothing to change: this is what runs\n"
	}
	var b strings.Builder
	for _, c := range r.Changes {
		if !c.Undoes {
			fmt.Fprintf(&b, "%s %s: %s\n", c.What, c.Name, c.Text)
		}
	}
	for _, line := range r.Undoes {
		fmt.Fprintf(&b, "takes back %s\n", line)
	}
	for i := range r.Swaps {
		if x := &r.Swaps[i]; r.Outcome != control.DryRun || x.Checked != "" || x.Trial != nil {
			b.WriteString(Swap(x))
		}
	}
	if r.Outcome == control.DryRun {
		fmt.Fprintf(&b, "dry run: %s; nothing has changed\n", Count(len(r.Changes), "difference"))
		writeNotes(&b, r.Notes)
		return b.String()
	}
	fmt.Fprintf(&b, "%s: %s in %s, at %s env steps\n", done, Count(len(r.Changes), "change"), seconds(r.Took), thousands(r.EnvStep))
	writeNotes(&b, r.Notes)
	return b.String()
}

// Swap describes a swap in a few lines: checked, tried, swapped.
func Swap(r *control.SwapReply) string {
	var b strings.Builder
	if r.Outcome == control.Unchanged {
		return fmt.Sprintf("%s runs %s already: nothing has changed\n", r.Component, Version(&r.New))
	}
	if r.Checked != "" {
		fmt.Fprintf(&b, "checked %s: %s\n", filepath.Base(r.New.File), r.Checked)
	}
	if r.Trial != nil {
		b.WriteString(trial(r.Trial))
	}
	if r.Outcome == control.DryRun {
		fmt.Fprintf(&b, "dry run: nothing has changed; %s would take over from %s %s\n", Version(&r.New), Version(&r.Old), boundary(r.At))
	} else {
		b.WriteString(swapped(r))
	}
	writeNotes(&b, r.Notes)
	writeKeys(&b, r.Write)
	return b.String()
}

func writeNotes(b *strings.Builder, notes []string) {
	for _, note := range notes {
		fmt.Fprintf(b, "note: %s\n", note)
	}
}

// writeKeys writes the keys that a file needs to make a change permanent.
func writeKeys(b *strings.Builder, sets []string) {
	var lines []string
	for _, set := range sets {
		key, value, _ := strings.Cut(set, " = ")
		at := strings.LastIndexByte(key, '.')
		switch {
		case at < 0 || key[at+1:] == "sha256":
		case value == "":
			lines = append(lines, fmt.Sprintf("no %s in [%s]", key[at+1:], key[:at]))
		default:
			lines = append(lines, fmt.Sprintf("%s = %s in [%s]", key[at+1:], value, key[:at]))
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(b, "the next reload takes it back unless the file says %s (--write writes that)\n", strings.Join(lines, ", "))
	}
}

// trial describes how both versions did in a trial.
func trial(c *control.Trial) string {
	unfinished := ""
	if n := c.New.Unfinished; n > 0 {
		unfinished = fmt.Sprintf(", %d unfinished", n)
	}
	return fmt.Sprintf("trial: %s, %s steps: %s, %s%s, mean return %.1f ± %.1f (old %.1f ± %.1f), length %.1f ± %.1f (old %.1f ± %.1f), %s\n",
		Count(c.Envs, "env"), thousands(c.New.Steps), Count(c.New.Faults, "trap"), Count(c.New.Episodes, "episode"), unfinished,
		c.New.MeanReturn, c.New.StdReturn, c.Old.MeanReturn, c.Old.StdReturn,
		c.New.MeanLength, c.New.StdLength, c.Old.MeanLength, c.Old.StdLength, speed(c.Faster))
}

// speed describes how fast a version is compared with another: half as fast or slower is a warning.
func speed(faster float64) string {
	switch {
	case faster >= 1 || faster <= 0:
		return fmt.Sprintf("%.2f× faster", faster)
	case faster > 0.5:
		return fmt.Sprintf("%.2f× slower", 1/faster)
	}
	return fmt.Sprintf("%.1f× slower: look at that (rlhost bench)", 1/faster)
}

// swapped describes the effect of a commit in one line.
func swapped(r *control.SwapReply) string {
	verb, ending := "swapped", "previous kept: rlhost rollback "+r.Component
	if r.Outcome == control.RolledBack {
		verb, ending = "rolled back", "runs now: "+Version(&r.New)
	}
	what := fmt.Sprintf("%s from %s to %s", r.Component, Version(&r.Old), Version(&r.New))
	if r.Envs > 0 {
		what = fmt.Sprintf("%d/%d envs %s", r.Envs, r.Envs, boundary(r.At))
	}
	parts := []string{
		fmt.Sprintf("%s %s in %s", verb, what, seconds(r.Took)),
		Count(r.Dropped, "transition") + " dropped",
	}
	if r.Truncated > 0 {
		parts = append(parts, Count(r.Truncated, "episode")+" ended as truncated")
	}
	if r.Kept > 0 {
		parts = append(parts, Count(r.Kept, "episode")+" kept")
	}
	if r.PauseMax > 0 {
		parts = append(parts, "stood still "+pause(r.PauseMax)+" at most")
	}
	if r.Probation > 0 {
		parts = append(parts, "watched for "+seconds(r.Probation))
	}
	return strings.Join(append(parts, ending), " · ") + "\n"
}

// pause writes for how many milliseconds stepping stood still: 12 µs, 0.12 ms, 14 ms.
func pause(ms float64) string {
	switch {
	case ms < 0.1:
		return fmt.Sprintf("%.0f µs", 1000*ms)
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}

// boundary describes when a change was made.
func boundary(at string) string {
	switch at {
	case "episode":
		return "at episode ends"
	case "trajectory":
		return "at trajectory ends"
	case "step":
		return "between two steps"
	case "now":
		return "at once"
	}
	return at
}
