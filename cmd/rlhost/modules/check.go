package modules

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/componentcheck"
	"github.com/rlhost/rlhost/plugins/envcheck"
	"github.com/rlhost/rlhost/plugins/wasm"
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
	results := componentcheck.Run(componentcheck.Options{Make: parts.Module(t, "."), Configure: c.decode, Messages: messages})
	if c.JSON {
		return results, json.NewEncoder(out).Encode(map[string]any{"component": c.Use, "checks": results})
	}
	_, err = fmt.Fprintf(out, "%s  component\n%s", c.Use, envcheck.Lines(results))
	return results, err
}

func (c Check) messages() ([]componentcheck.Message, error) {
	if c.Record == "" {
		return nil, nil
	}
	f, err := os.Open(c.Record)
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
	values := map[string]any{}
	for key, value := range c.Args {
		values[key] = value
	}
	return table.Decode(table.Plain(values), into)
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
