package touch

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// transportAxis adds a transport that is the rings, counted, and puts it first in the table, so that every process has it.
func transportAxis() axis {
	return axis{name: "a transport", doors: 1,
		files: map[string]string{"core/link/transports/toy/toy.go": `// Package toy is a transport.
package toy

import (
	"fmt"
	"os"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/core/link/transports/rings"
	"github.com/rlhost/rlhost/hostabi"
)

type counted struct {
	link.Transport
	put, got atomic.Int64
}

func (c *counted) Put(ms []hostabi.Message) int {
	n := c.Transport.Put(ms)
	c.put.Add(int64(n))
	return n
}

func (c *counted) Get(dst []hostabi.Message) int {
	n := c.Transport.Get(dst)
	c.got.Add(int64(n))
	return n
}

func (c *counted) Close() error {
	if c.put.Load() > 0 && c.got.Load() > 0 {
		fmt.Fprintln(os.Stderr, "toys went both ways")
	}
	return c.Transport.Close()
}

// New makes the host's end.
func New(program string) (link.Transport, []*os.File, error) {
	end, files, err := rings.New(program)
	return &counted{Transport: end}, files, err
}

// Open makes the plugin's end.
func Open(first int) (link.Transport, error) {
	fmt.Fprintln(os.Stderr, "toys may come")
	end, err := rings.Open(first)
	return &counted{Transport: end}, err
}
`},
		edits: []edit{
			{"core/link/transports/transports.go", "\t\t{Name: native.TransportRings,", "\t\t{Name: \"toy\", New: toy.New, Open: toy.Open},\n"},
			{"core/link/transports/transports.go", "\t\"github.com/rlhost/rlhost/hostabi/native\"", "\t\"github.com/rlhost/rlhost/core/link/transports/toy\"\n"},
		},
		check: func(t *testing.T, p *toys) {
			p.build(t, filepath.Join(p.dir, "shaper"), "./examples/plugins/process-go")
			p.write(t, "transport.toml", pipelineWith("", `[plugin.shaper]
path = "./shaper"
[component.shaper]
plugin = "shaper"
scale = 0.1
[[wire]]
signal = "rollout.trajectories"
slot = "shaper.on_trajectories"
mode = "queue"
depth = 64
on_full = "block"
replace = true
write = ["reward"]
[[wire]]
signal = "shaper.trajectories"
slot = "batcher.on_trajectories"
mode = "queue"
depth = 64
on_full = "block"
`))
			for _, says := range []string{"toys may come", "toys went both ways", "evaluation: return"} {
				p.says(t, says, "train", "transport.toml", "--set", "run.evaluation.episodes=1")
			}
			// A plugin of another SDK does not have it, and says so.
			plain := exec.Command("go", "build", "-o", filepath.Join(p.dir, "shaper"), "./examples/plugins/process-go")
			plain.Dir = p.root
			if out, err := plain.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			p.says(t, `the host uses the transport "toy", which this program does not have`, "train", "transport.toml")
		}}
}
