package results

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/rlhost/rlhost/pipeline/export"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/session"
)

// Export writes a trained policy as a file.
type Export struct {
	RunID string `arg:"" optional:"" default:"latest" name:"run" help:"Run: a folder, a name such as cartpole (its newest run), cartpole/7, or latest."`
	Folder
	Format     string `enum:"numpy,safetensors,onnx,wasm,html" default:"numpy" help:"numpy, safetensors, onnx, wasm or html."`
	Output     string `short:"o" placeholder:"FILE" help:"File to write; default NAME and .npz, .safetensors, .onnx, .wasm or .html."`
	Policy     string `placeholder:"NAME" help:"Policy to export; default the leading one."`
	Checkpoint string `default:"latest" help:"best (of that policy), latest or a policy version of the leading one."`
	Versions   int    `default:"4" help:"Most policy versions of an html page, the checkpoint's among them."`
}

// Help shows how exports are used.
func (c *Export) Help() string {
	return `The file holds everything between an observation and an action: normalisation, network, heads, masks and bounds. It is
compared with what rlhost computes on up to 10,000 observations before it is written.

  rlhost export cartpole --format onnx -o cartpole.onnx
  rlhost export cartpole/3 --checkpoint best -o policy.npz
  rlhost export cartpole --format wasm -o policy.wasm     and rlhost_policy.h next to it says how it is called
  rlhost export cartpole --format html                    a page in which it plays, from a disk and offline
  python -c 'import sys; sys.path.insert(0, "policy.npz"); import rlhost_policy; print(rlhost_policy.load("policy.npz").act([0, 0, 0, 0]))'`
}

// Run exports a checkpoint's policy.
func (c *Export) Run(p *Program) error {
	return p.WithParts(func(parts *graph.Parts) error { return c.export(p, parts) })
}

func (c *Export) export(p *Program, parts *graph.Parts) error {
	run, checkpoint, err := c.Load(c.RunID, c.Checkpoint, c.Policy)
	if err != nil {
		return err
	}
	if c.Versions < 1 {
		return usage(fmt.Errorf("--versions %d: want 1 or more", c.Versions))
	}
	format := export.Format(c.Format)
	var x session.Exported
	if format == session.HTML {
		x, err = session.Page(context.Background(), run, &checkpoint, parts, c.Policy, c.Versions)
	} else {
		x, err = session.Export(context.Background(), run, &checkpoint, parts, c.Policy, format)
	}
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(run.ID(), "/", "-")
	if len(run.Info().Policies) > 1 && c.Policy != "" {
		name += "-" + c.Policy
	}
	name = cmp.Or(c.Output, name+"."+cmp.Or(strings.TrimPrefix(format.Suffix(), "."), c.Format))
	if err := write(name, x.File); err != nil {
		return err
	}
	if format == export.Wasm {
		if err := write(filepath.Join(filepath.Dir(name), export.HeaderName), export.Header); err != nil {
			return err
		}
	}
	if x.Rows == 0 {
		p.printf("wrote %s: %d bytes, policy version %d; its program alone computes it\n", name, len(x.File), x.Version)
		return nil
	}
	p.printf("wrote %s: %d bytes, policy version %d; largest difference from rlhost on %d observations: %.1e\n",
		name, len(x.File), x.Version, x.Rows, x.Largest)
	return nil
}
