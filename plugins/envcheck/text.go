package envcheck

import (
	"fmt"
	"strings"

	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/hostabi"
)

// Text writes what was checked for people: the spaces of the environment, a line or two for each check, and how many of them
// passed. Names and details are the environment's words.
func Text(s hostabi.EnvSpec, results []Result) string {
	var b strings.Builder
	var modes []string
	for _, m := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled} {
		if s.Autoreset&m != 0 {
			modes = append(modes, m.String())
		}
	}
	agents := ""
	if s.HasAgents() {
		agents = text.Count(s.Agents(), "agent") + "  "
	}
	fmt.Fprintf(&b, "%s  abi %v  %sobs %s  act %s  autoreset %s  episode_limit %d\n",
		s.Name, s.ABI, agents, s.Spaces(hostabi.RoleObservation), s.Spaces(hostabi.RoleAction), strings.Join(modes, "|"), s.EpisodeLimit)
	b.WriteString(Lines(results))
	return b.String()
}

// Lines writes a line or two for each check, and how many of them passed.
func Lines(results []Result) string {
	var b strings.Builder
	counts := map[Verdict]int{}
	for _, r := range results {
		counts[r.Verdict]++
		fmt.Fprintf(&b, " %-4s %s %-42s %s\n", r.Verdict, r.ID, r.Title, r.Detail)
		if r.Help != "" {
			fmt.Fprintf(&b, "      → %s; see rlhost explain %s\n", r.Help, r.ID)
		}
	}
	fmt.Fprintf(&b, "%d passed, %s, %d failed\n", counts[OK], text.Count(counts[Warning], "warning"), counts[Failed])
	return b.String()
}
