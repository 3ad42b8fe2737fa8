package modules

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/componentcheck"
	"github.com/rlhost/rlhost/plugins/envcheck"
	"github.com/rlhost/rlhost/plugins/wasm"
	"github.com/rlhost/rlhost/plugins/wrap"
)

// IsComponent reports whether a file is a module of components.
func IsComponent(path string) bool {
	report, err := wasm.Inspect(path)
	return err == nil && report.Kind == "component"
}

// Check is a check of a module of components.
type Check struct {
	Use    string
	Args   map[string]string // its table
	Grants []string
	Memory uint64 // of an instance; 0 is the default
	Record string // file of messages to play; empty: some are made up
	JSON   bool
}

// Run checks the module, prints what was found, and returns it.
func (c Check) Run(parts *graph.Parts, out io.Writer) ([]envcheck.Result, error) {
	messages, err := c.messages()
	if err != nil {
		return nil, err
	}
	t := graph.ModuleTable{Use: c.Use, Grants: c.Grants}
	t.Limits.Memory = c.Memory
	if c.Record == "" && c.wraps(parts.Module(t, ".")) {
		return c.around(parts, out)
	}
	results := componentcheck.Run(componentcheck.Options{Make: parts.Module(t, "."), Configure: c.decode, Messages: messages})
	if c.JSON {
		return results, json.NewEncoder(out).Encode(map[string]any{"component": c.Use, "checks": results})
	}
	_, err = fmt.Fprintf(out, "%s  component\n%s", c.Use, envcheck.Lines(results))
	return results, err
}

// wraps reports whether the module looks at what only wrappers of environments have.
func (c Check) wraps(make graph.Maker) bool {
	made, err := make()
	if err != nil || made.Configure(c.decode) != nil {
		return false // the check says why
	}
	w, watched := made.(component.Watched)
	return watched && slices.ContainsFunc(w.Looks(), func(l hostabi.ManifestColumn) bool { return wrap.OwnColumn(l.Name) }) && made.Stop() == nil
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
		results := envcheck.Run(context.Background(), p, envcheck.Options{})
		if err := p.Close(); err != nil {
			return results, err
		}
		if c.JSON {
			return results, json.NewEncoder(out).Encode(map[string]any{"wrapper": c.Use, "around": t.Use, "checks": results})
		}
		_, err := fmt.Fprintf(out, "%s  wrapper, around %s\n%s", c.Use, t.Use, envcheck.Lines(results))
		return results, err
	}
	return nil, err
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

// BuiltinLike proposes the built-in environment that was probably meant, else what is proposed anyway.
func BuiltinLike(name, otherwise string) string {
	for builtin := range plugins.Builtins() {
		if strings.EqualFold(name, builtin) || strings.HasPrefix(builtin, strings.ToLower(name)+"@") {
			return "did you mean the built-in environment " + builtin + "?"
		}
	}
	return otherwise
}
