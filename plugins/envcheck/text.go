package envcheck

import (
	"fmt"
	"strings"

	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/hostabi"
)

// Head describes the checked environment for people: its spaces and its facts. Names and details are the environment's words.
func Head(s hostabi.EnvSpec) string {
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
	if facts := Facts(s); len(facts) > 0 {
		fmt.Fprintf(&b, "  it says: %s\n", strings.Join(facts, "; "))
	}
	for _, a := range Arguments(s) {
		fmt.Fprintf(&b, "  argument %s\n", a)
	}
	return b.String()
}

// Facts returns a description's facts beyond spaces and modes, a few words each, in the order of the ABI. They are the
// environment's words and are not checked.
func Facts(s hostabi.EnvSpec) []string {
	facts := []string{}
	for flag, words := range flagWords {
		if s.Flags>>flag&1 != 0 {
			facts = append(facts, words)
		}
	}
	if s.MaxEnvs > 0 {
		facts = append(facts, "at most "+text.Count(s.MaxEnvs, "environment")+" together")
	}
	if s.Render.FPS > 0 {
		facts = append(facts, fmt.Sprintf("%v pictures a second", s.Render.FPS))
	}
	if s.DT > 0 {
		facts = append(facts, fmt.Sprintf("a step of %v s", s.DT))
	}
	for _, g := range s.Groups {
		if g.AgentNames != "" {
			facts = append(facts, "agents "+strings.Join(strings.Fields(g.AgentNames), ", "))
		}
	}
	if r := &s.Rewards; r.Low != 0 || r.High != 0 {
		facts = append(facts, fmt.Sprintf("rewards from %v to %v", r.Low, r.High))
	}
	if solved := s.Rewards.Threshold; solved != nil {
		facts = append(facts, fmt.Sprintf("a mean return of %v is solved", *solved))
	}
	if s.Licence != "" {
		facts = append(facts, "licence "+strings.Join(strings.Fields(s.Licence), " "))
	}
	return facts
}

// Argument is an argument of an environment, as its description has it.
type Argument struct {
	Name    string `json:"name"`
	Takes   string `json:"takes"` // such as "a whole number from 1 to 19"
	Default string `json:"default,omitempty"`
	Doc     string `json:"doc,omitempty"`
}

// String writes it in one line.
func (a Argument) String() string {
	line := a.Name + ": " + a.Takes
	if a.Default != "" {
		line += ", default " + a.Default
	}
	if a.Doc != "" {
		line += "; " + strings.Join(strings.Fields(a.Doc), " ")
	}
	return line
}

// Arguments returns the arguments that a description lists, in its order.
func Arguments(s hostabi.EnvSpec) []Argument {
	list := []Argument{}
	for i := range s.Args {
		a := &s.Args[i]
		list = append(list, Argument{Name: a.Name, Takes: a.Wants(), Default: a.Default, Doc: a.Doc})
	}
	return list
}

// flagWords are the meanings of an environment's flags, from the lowest on.
var flagWords = [...]string{"deterministic", "", "which agents act changes", "",
	"create and reset take long"}

// Line writes a check, and its remedy.
func (r *Result) Line() string {
	line := fmt.Sprintf(" %-4s %s %-42s %s\n", r.Verdict, r.ID, r.Title, r.Detail)
	if r.Help != "" {
		line += fmt.Sprintf("      → %s; see rlhost explain %s\n", r.Help, r.ID)
	}
	return line
}

// manyTraces is how many checks that compare traces fail together where one mistake probably makes all of them fail.
const manyTraces = 3

// Sum writes how many checks passed.
func Sum(results []Result) string {
	counts, traces, hint := map[Verdict]int{}, 0, ""
	for _, r := range results {
		counts[r.Verdict]++
		if r.Verdict == Failed && strings.HasPrefix(r.ID, "D") {
			traces++
		}
	}
	if traces >= manyTraces {
		hint = fmt.Sprintf("%d of the D checks fail: often one read outside of a row causes all of them, such as action[1] of a single action; "+
			"a native build with -fsanitize=address,undefined names its line\n", traces)
	}
	return hint + fmt.Sprintf("%d passed, %s, %d failed\n", counts[OK], text.Count(counts[Warning], "warning"), counts[Failed])
}
