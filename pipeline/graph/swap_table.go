package graph

import (
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
)

// swapFile is the [swap] table as it stands in the file.
type swapFile struct {
	At        string        `toml:"at"`
	Canary    int           `toml:"canary"`
	Verify    int           `toml:"verify"`
	Probation time.Duration `toml:"probation"`
	KeepState bool          `toml:"keep_state"`
}

func defaultSwap() swapFile {
	return swapFile{At: component.AtTrajectory.String(), Canary: 4, Verify: 2000, Probation: time.Minute}
}

// maxCanary bounds the environments of a trial: they are made beside the running ones.
const maxCanary = 4096

// swapTable reads [swap].
func (c *checker) swapTable() {
	f := defaultSwap()
	n := c.root.at("swap")
	d := &tableDecoder{c: &c.Report, n: n, path: "swap"}
	d.decode(&f) // what is wrong has been noted
	at, err := component.ParseBoundary(f.At)
	if child := n.at("at"); err != nil {
		c.Add("E010", child.val, table.DidYouMean(f.At, "%q", "boundaries", component.BoundaryNames[:]), "unknown boundary %q", f.At)
	}
	c.atLeast(n, "canary", f.Canary, 0)
	if f.Canary > maxCanary {
		c.Add("E005", n.at("canary").val, "", "`canary` is %d, must be %d or less", f.Canary, maxCanary)
	}
	c.atLeast(n, "verify", f.Verify, 1)
	c.graph.Swap = Swap{At: at, Canary: f.Canary, Verify: f.Verify, Probation: f.Probation, KeepState: f.KeepState}
}

// swapRule reads the key swap of a table.
func (c *checker) swapRule(of *node, value string) SwapRule {
	rule := SwapRule(value)
	n := of.at("swap")
	if _, ok := n.text(); ok && rule != SwapAlways && rule != SwapNever {
		c.Add("E010", n.val, table.DidYouMean(value, "%q", "rules", []string{string(SwapAlways), string(SwapNever)}), "unknown rule %q", value)
	}
	return rule
}

func (s *Swap) file() swapFile {
	return swapFile{At: s.At.String(), Canary: s.Canary, Verify: s.Verify, Probation: s.Probation, KeepState: s.KeepState}
}
