package modules

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/componentcheck"
	"github.com/rlhost/rlhost/plugins/envcheck"
	"github.com/rlhost/rlhost/plugins/wasm/module"
	"github.com/rlhost/rlhost/plugins/wrap"
)

// IsComponent reports whether a file is a module of components.
func IsComponent(path string) bool {
	report, err := module.Inspect(path)
	return err == nil && report.Kind == "component"
}

// Check is a check of a module of components.
type Check struct {
	Use    string
	Args   map[string]string // its table
	Grants []string
	Data   string // folder that it may read; empty: none
	Memory uint64 // of an instance; 0 is the default
	Record string // file of messages to play; empty: some are made up
	JSON   bool
}

// Run checks the module, prints the findings, and returns them.
func (c Check) Run(parts *graph.Parts, out io.Writer) ([]envcheck.Result, error) {
	messages, err := c.messages()
	if err != nil {
		return nil, err
	}
	t := graph.ModuleTable{Use: c.Use, Grants: c.Grants, Data: c.Data}
	t.Limits.Memory = c.Memory
	wraps, err := c.look(parts.Module(t, "."))
	if err != nil {
		return nil, err
	}
	if c.Record == "" && wraps {
		return c.around(parts, out)
	}
	o := componentcheck.Options{Make: parts.Module(t, "."), Configure: c.decode, Messages: messages}
	if c.JSON {
		results := componentcheck.Run(o)
		return results, json.NewEncoder(out).Encode(map[string]any{"component": c.Use, "checks": results})
	}
	p := NewPrinter(out, c.Use+"  component\n")
	o.Done = p.Line
	return p.Sum(componentcheck.Run(o))
}

// Printer prints checks while they are made.
type Printer struct {
	out io.Writer
	err error // of the first line that could not be written
}

// NewPrinter prints the head of the checks.
func NewPrinter(out io.Writer, head string) *Printer {
	p := &Printer{out: out}
	p.print(head)
	return p
}

func (p *Printer) print(words string) {
	_, err := io.WriteString(p.out, text.Printable(words))
	p.err = cmp.Or(p.err, err)
}

// Line prints a check.
func (p *Printer) Line(r envcheck.Result) { p.print(r.Line()) }

// Sum prints how many checks passed, and returns them.
func (p *Printer) Sum(results []envcheck.Result) ([]envcheck.Result, error) {
	p.print(envcheck.Sum(results))
	return results, p.err
}

// look makes the module once, before it is checked, and reports whether it is for wrapping alone. An error is that of a module which is built
// for another version of the ABI, which is no mistake for a check to find; other errors are left to the check.
func (c Check) look(make graph.Maker) (wraps bool, err error) {
	made, err := make()
	if err == nil {
		err = made.Configure(c.decode)
		wraps = err == nil && wrapsAlone(made)
		err = errors.Join(err, made.Stop())
	}
	if e := (*table.Error)(nil); errors.As(err, &e) && e.Code == module.CodeFuture {
		return false, e
	}
	return wraps && err == nil, nil
}

// wrapsAlone reports whether a component has the ports of a wrapper, and is for wrapping alone: it observes, or looks at columns that only
// wrappers have. Others with those ports are checked as components.
func wrapsAlone(made component.Component) bool {
	m := made.Manifest()
	_, _, request, ok := m.Wraps()
	w, watched := made.(component.Watched)
	return ok && (request == component.PayloadObserve || watched && slices.ContainsFunc(w.Looks(), func(l hostabi.ManifestColumn) bool { return wrap.OwnColumn(l.Name) }))
}

// around checks the module as a wrapper: around the first built-in environment that it suits, which passes all checks by itself.
func (c Check) around(parts *graph.Parts, out io.Writer) ([]envcheck.Result, error) {
	path, err := filepath.Abs(c.Use)
	if err != nil {
		return nil, err
	}
	t := graph.EnvTable{Source: env.DefaultSource()}
	grants := []any{}
	for _, g := range c.Grants {
		grants = append(grants, g)
	}
	wrapper := env.Wrapper{env.KeyUse: path, "args": c.values(), "grants": grants}
	if c.Memory > 0 {
		wrapper["limits"] = map[string]any{"memory": fmt.Sprintf("%dKiB", c.Memory>>10)}
	}
	t.Wrap = []env.Wrapper{wrapper}
	for _, t.Use = range parts.Builtins {
		p, unsuited := parts.Load(context.Background(), "", t, ".")
		if unsuited != nil {
			err = cmp.Or(err, unsuited)
			continue
		}
		results, err := c.checkWrapped(p, t.Use, out)
		return results, errors.Join(err, p.Close())
	}
	return nil, err
}

func (c Check) checkWrapped(p env.Plugin, use string, out io.Writer) ([]envcheck.Result, error) {
	if c.JSON {
		results := envcheck.Run(context.Background(), p, envcheck.Options{})
		return results, json.NewEncoder(out).Encode(map[string]any{"wrapper": c.Use, "around": use, "checks": results})
	}
	printed := NewPrinter(out, fmt.Sprintf("%s  wrapper, around %s\n", c.Use, use))
	return printed.Sum(envcheck.Run(context.Background(), p, envcheck.Options{Done: printed.Line}))
}

func (c Check) messages() ([]componentcheck.Message, error) {
	if c.Record == "" {
		return nil, nil
	}
	f, err := files.Open(c.Record)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	messages, err := componentcheck.Read(f)
	if err == nil && len(messages) == 0 {
		err = fmt.Errorf("no messages")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Record, err)
	}
	return messages, nil
}

// decode gives the component its table: text, as modules get it.
func (c Check) decode(into any) error {
	return table.Decode(table.Plain(c.values()), into)
}

func (c Check) values() map[string]any {
	values := map[string]any{}
	for key, value := range c.Args {
		values[key] = value
	}
	return values
}

// Likely proposes the environments that were probably meant, else otherwise.
func Likely(name string, builtins []string, otherwise string) string {
	uses := graph.LikelyUse(name, builtins)
	switch {
	case len(uses) == 0 || uses[0] == name:
		return otherwise
	case len(uses) == 1 && slices.Contains(builtins, uses[0]):
		return "did you mean the built-in environment " + uses[0] + "?"
	case len(uses) == 1:
		return "did you mean " + uses[0] + "?"
	}
	return fmt.Sprintf("did you mean %s, or the built-in environment %s?", uses[0], uses[1])
}
