package session

import (
	"context"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// rewire answers VerbRewire.
func (c changer) rewire(ctx context.Context, q control.RewireRequest, notice control.Notice) (*control.ReloadReply, error) {
	if len(q.Connect)+len(q.Disconnect) == 0 {
		return nil, bad("nothing is to be connected or disconnected")
	}
	x := c.asked(ctx, whatRewire, "rewiring", notice)
	x.rules = rulesOf(c.job.Pipeline.Graph())
	x.rules.dryRun, x.rules.probation = q.DryRun, 0
	ctx, err := c.job.begin(ctx, x.work)
	if err != nil {
		return nil, err
	}
	defer c.job.finish(x.work)
	defer x.tellWaits(c.job.Parts.Waits)()
	began := time.Now()
	running := c.job.Pipeline.Graph()
	text, missing := running.Rewired(q.Disconnect, q.Connect)
	if missing != nil {
		return nil, noSuchWire(running, missing)
	}
	if err := x.aimText(text, nil); err != nil {
		return nil, err
	}
	return x.reloadReply(x.run(ctx), began)
}

// noSuchWire is the error of a wire that cannot be taken out; its help has the wires of the same signal, or of the same slot.
func noSuchWire(g *graph.Graph, w *control.Wire) *control.Error {
	e := control.Errorf(control.CodeUnknown, "no wire leads from %q to %q", w.Signal, w.Slot)
	e.Exit = int(Usage)
	var there []string
	for i := range g.Wires {
		o := &g.Wires[i]
		if component.Qualified(o.From, o.Signal) == w.Signal || component.Qualified(o.To, o.Slot) == w.Slot {
			there = append(there, o.String())
		}
	}
	if len(there) > 0 {
		e.Help = "there are " + strings.Join(there, ", ")
	}
	return e
}
