package component

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/hostabi"
)

// Flow describes a configured component's data flow, so that the pipeline can refuse a graph that would starve,
// and an evaluation can play as it does.
type Flow struct {
	Splits    int // trajectory blocks of one instance that are written at the same time
	Blocks    int // trajectory blocks of one instance in circulation, asynchronously; in synchronous mode Splits
	BlockRows int // env steps in one block
	Envs      int // environments of one instance
	// DatasetRows is how many env steps a batcher gathers before it releases any block.
	DatasetRows int
	// Policies names the policies that act in the component's environments, by patterns of agents; empty: one policy acts in
	// all rows, that of the component which answers its requests. See PolicyOfAgents.
	Policies map[string]string
	// Opponents are the shares of episodes in which one agent is played by another policy, by its name.
	Opponents map[string]float64
	// Versions is how many versions of its policy one instance holds at most, where versions are drawn; 0 for a component that holds one.
	Versions int
}

// DatasetBlocks is how many lists of datasets a batcher has under way at most.
const DatasetBlocks = 8

// Offering is optional: of a component with ports that a key of its table brings.
type Offering interface {
	// Offers returns the keys, which are false by default, by the names of the ports that they bring.
	Offers() map[string]string
}

// Flowing is optional, for a component that makes or gathers blocks, or holds versions of a policy.
type Flowing interface {
	// Flow is called after a Configure without errors.
	Flow() Flow
}

// Episodic is optional, for a component that makes blocks.
type Episodic interface {
	// WholeEpisodes reports, once the component is configured, whether each environment plays one episode in each block, from its reset to
	// its end.
	WholeEpisodes() bool
}

// Acting returns the names of the policies that act, sorted; none where one policy acts in all rows.
func (f *Flow) Acting() []string {
	names := slices.AppendSeq(slices.Collect(maps.Values(f.Policies)), maps.Keys(f.Opponents))
	slices.Sort(names)
	return slices.Compact(names)
}

// ShapePolicies returns them as trajectory.Shape has them: empty where one policy acts.
func (f *Flow) ShapePolicies() string {
	if names := f.Acting(); len(names) > 1 {
		return strings.Join(names, " ")
	}
	return ""
}

// Keeps reports whether blocks of an environment's steps keep the earlier rows that a policy needs: it is made for the same
// environment, or it acts.
func (f *Flow) Keeps(env, policy, policyEnv string) bool {
	return policyEnv == env || slices.Contains(f.Acting(), policy)
}

// AgentNames returns the names of an environment's agents, GROUP/INDEX, in the order of their rows. A group without a
// name is called agent, and so is the group of an environment that declares none.
func AgentNames(spec *hostabi.EnvSpec) []string {
	groups := spec.Groups
	if len(groups) == 0 {
		groups = []hostabi.Group{{Agents: spec.Agents()}}
	}
	var names []string
	for _, g := range groups {
		for i := range g.Agents {
			names = append(names, groupName(g)+"/"+strconv.Itoa(i))
		}
	}
	return names
}

func groupName(g hostabi.Group) string {
	if g.Name == "" {
		return "agent"
	}
	return g.Name
}

// CodeAgents is the code of agents and policies that do not match; rlhost explain has its page.
const CodeAgents = "E055"

// PolicyOfAgents returns the name of the policy that acts for each agent of an environment where no opponent does, in the
// order of AgentNames. Patterns are as in path.Match; the name of a group matches all its agents. The error joins a
// *ConfigError for each pattern that no agent matches, and for agents that do not match exactly one.
func (f *Flow) PolicyOfAgents(spec *hostabi.EnvSpec) ([]string, error) {
	agents := AgentNames(spec)
	of, by := make([]string, len(agents)), make([]string, len(agents))
	var errs []error
	bad := func(key, help, reason string, args ...any) {
		errs = append(errs, &ConfigError{Code: CodeAgents, Key: key, Reason: fmt.Sprintf(reason, args...), Help: help})
	}
	all := "agents of " + spec.Name + ": " + strings.Join(shortened(agents), ", ")
	for _, pattern := range slices.Sorted(maps.Keys(f.Policies)) {
		found := false
		for i, agent := range agents {
			if !matchesAgent(pattern, agent) {
				continue
			}
			found = true
			if by[i] != "" {
				bad("policies."+pattern, "let one pattern match an agent", "and %q both match agent %s", by[i], agent)
				break
			}
			of[i], by[i] = f.Policies[pattern], pattern
		}
		if !found {
			bad("policies."+pattern, all, "matches no agent")
		}
	}
	if i := slices.Index(by, ""); i >= 0 {
		bad("policies", all, "name no policy for agent %s", agents[i])
	}
	if len(f.Opponents) > 0 && len(agents) == 1 {
		bad("opponents", "leave them out", "need two agents or more, %s has one", spec.Name)
	}
	return of, errors.Join(errs...)
}

// matchesAgent reports whether an agent matches a pattern; a malformed pattern matches none.
func matchesAgent(pattern, agent string) bool {
	group, _ := path.Split(agent)
	if pattern+"/" == group {
		return true
	}
	ok, err := path.Match(pattern, agent)
	return ok && err == nil
}

// shortened returns the first names of a list for a message.
func shortened(names []string) []string {
	const most = 8
	if len(names) <= most {
		return names
	}
	return append(slices.Clone(names[:most]), "…")
}
