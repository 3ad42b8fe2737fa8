package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
)

// Definition is one policy of a pipeline: its network and the backend that computes it. It implements component.Policy.
type Definition struct {
	Name    string
	Network Network
	Backend Backend
}

// Of returns the definition of a policy of that name, for components while they start.
func Of(h *component.Host, name string) (*Definition, error) {
	p, err := h.Policy(name)
	if err != nil {
		return nil, err
	}
	return DefinitionOf(name, p)
}

// DefinitionOf returns a policy of that name as a definition.
func DefinitionOf(name string, p component.Policy) (*Definition, error) {
	d, ok := p.(*Definition)
	if !ok {
		return nil, fmt.Errorf("policy %q is a %T, want *policy.Definition", name, p)
	}
	return d, nil
}

// WeightBytes returns the bytes of one version of the weights.
func (d *Definition) WeightBytes() int {
	f := d.Network.Weights()
	return f.Bytes()
}

// Memory describes the earlier rows that the network needs to act on a row.
func (d *Definition) Memory() trajectory.Memory { return d.Network.Memory() }

// SameNetwork returns nil if parameters of one policy mean the same in the other, and both are learned in the same chunks, for
// which blocks are made; and else both networks side by side.
func (d *Definition) SameNetwork(next component.Policy) error {
	to, err := DefinitionOf("next", next)
	if err != nil {
		return err
	}
	was, is := d.Network.described(), to.Network.described()
	if slices.Equal(was, is) {
		return nil
	}
	width := 40
	for _, line := range was {
		width = max(width, len(line))
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\n  %-*s %s", width, "running", "new")
	lines := max(len(was), len(is))
	was, is = append(was, slices.Repeat([]string{"-"}, lines-len(was))...), append(is, slices.Repeat([]string{"-"}, lines-len(is))...)
	for i := range lines {
		mark := " "
		if was[i] != is[i] {
			mark = "*"
		}
		fmt.Fprintf(&text, "\n%s %-*s %s", mark, width, was[i], is[i])
	}
	return errors.New(text.String())
}

// described are the network's lines, and the chunks that it is learned in.
func (n *Network) described() []string {
	lines := n.Lines()
	if n.Chunk > 0 {
		lines = append(lines, fmt.Sprintf("learned in chunks of %d rows", n.Chunk))
	}
	return lines
}

// CodeNetwork is the code of saved parameters that are another network's; rlhost explain has its page.
const CodeNetwork = "E046"

// SameParameters returns why saved parameters do not fit a network: a *table.Error with the first line that differs. Initial
// values do not matter.
func SameParameters(saved, now *Network) error {
	was, is := saved.Lines(), now.Lines()
	for i := range max(len(was), len(is)) {
		line := func(lines []string) string {
			if i < len(lines) {
				return lines[i]
			}
			return "nothing more"
		}
		if a, b := line(was), line(is); a != b {
			return &table.Error{Code: CodeNetwork, Reason: fmt.Sprintf("the saved policy's network has %q, the pipeline's %q", a, b),
				Help: "write [policy] and the environment as they were when it was saved, or start without it"}
		}
	}
	return nil
}
