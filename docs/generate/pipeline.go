package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/names"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/internal/markdown"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/runner"
)

// pipelinePage is the page of all keys of pipeline files.
func pipelinePage(string) (string, error) {
	parts, engines := builtin.New(builtin.Options{Output: runner.Output{}})
	defer engines.Close() // nothing was started
	var b strings.Builder
	b.WriteString("# Pipeline file\n\n" + markdown.Generated + "\n" + markdown.Prose(pipelineIntro))
	for _, t := range parts.Describe() {
		title := t.Header
		switch {
		case title == "":
			b.WriteString("\n## Top of the file\n\n" + markdown.Prose(t.About) + "\n" + markdown.Table(keysHeader, keyRows(t.Path, t.Keys)))
			continue
		case t.Kind == graph.RuntimeWasm:
			title += ` with runtime = "wasm"`
		case t.Kind != "":
			title += fmt.Sprintf(` with kind = "%s"`, t.Kind)
		}
		b.WriteString("\n## " + markdown.Code(title) + "\n")
		if t.About != "" {
			b.WriteString("\n" + markdown.Prose(t.About))
		}
		if len(t.Keys) > 0 {
			b.WriteString("\n" + markdown.Table(keysHeader, keyRows(t.Path, t.Keys)))
		}
		if t.Path == "wire" {
			b.WriteString("\nDefaults by payload:\n\n" + markdown.Table([]string{"Payload", "mode", "depth", "on_full", "Columns to write"}, payloadRows()))
		}
		if rows := portRows(&t.Ports); len(rows) > 0 {
			b.WriteString("\n" + markdown.Table([]string{"Port", "Kind", "Payload", "Meaning"}, rows))
		}
	}
	about := parts.AboutPresets()
	var presets [][]string
	for _, name := range slices.Sorted(maps.Keys(about)) {
		presets = append(presets, []string{markdown.Code(name), markdown.Escape(about[name])})
	}
	b.WriteString("\n## Presets\n\n" + markdown.Prose(presetsIntro) + "\n" + markdown.Table([]string{"Preset", "Purpose"}, presets))
	values, err := presetValues(parts, slices.Sorted(maps.Keys(about)))
	if err != nil {
		return "", err
	}
	return b.String() + "\n" + values, nil
}

const pipelineIntro = "Every key of a pipeline file, with its type, default, range, unit and meaning.\n\nA pipeline file is TOML. `rlhost validate` checks one, and `rlhost show --expanded` prints every key with its value.\n" + `
The columns are the same in all tables.
A default is the one without a preset; [presets](#presets) have others.
A duration is a number and a unit in quotes, such as "200us", "30s" or "10m".
A size is a number and a unit in quotes, such as "64KiB" or "1GiB".
A word in capitals stands for any name, and [] for the place in a list.
The last column has the words of Stable-Baselines3, CleanRL, Sample Factory and RLlib for the key.`

const presetsIntro = "`preset` in `[train]` stands for all tables that a file leaves out.\n\nThe second table has the keys that a preset changes."

var keysHeader = []string{"Key", "Type", "Default", "Range", "Unit", "Meaning", "Elsewhere"}

// keyRows are the rows of a table's keys.
func keyRows(path string, keys []table.Description) (rows [][]string) {
	for _, k := range keys {
		unset := k.Default
		if isTOML(unset) {
			unset = markdown.Code(unset)
		}
		var words []string
		for _, w := range wordsElsewhere(path, k.Key) {
			words = append(words, markdown.Code(w))
		}
		rows = append(rows, []string{markdown.Code(k.Key), k.Type, unset, k.Range, k.Unit, k.Meaning, strings.Join(words, ", ")})
	}
	return rows
}

// isTOML reports whether a default is a value, and not words about one.
func isTOML(text string) bool {
	for _, ends := range []string{`""`, "[]", "{}"} {
		if len(text) > 1 && text[0] == ends[0] && text[len(text)-1] == ends[1] {
			return true
		}
	}
	_, err := strconv.ParseFloat(text, 64)
	return err == nil || text == "true" || text == "false"
}

// payloadRows are the defaults of wires by their payloads; the last row is for payloads of the user's own.
func payloadRows() (rows [][]string) {
	const other = "any other"
	for _, name := range append(component.Payloads(), other) {
		mode, depth, onFull := graph.DeliveryText(name)
		var columns []string
		for _, c := range component.PayloadOf(name).Grantable {
			columns = append(columns, markdown.Code(c))
		}
		shown := markdown.Code(name)
		if name == other {
			shown = name
		}
		rows = append(rows, []string{shown, markdown.Code(mode), markdown.Code(depth), markdown.Code(onFull), strings.Join(columns, ", ")})
	}
	return rows
}

// portRows are the rows of a component's signals and slots.
func portRows(m *component.Manifest) (rows [][]string) {
	for _, p := range m.Signals {
		rows = append(rows, []string{markdown.Code(p.Name), "signal", markdown.Code(p.Payload), markdown.Escape(p.Doc)})
	}
	for _, p := range m.Slots {
		rows = append(rows, []string{markdown.Code(p.Name), "slot", markdown.Code(p.Payload), markdown.Escape(p.Doc)})
	}
	return rows
}

// wordsElsewhere returns the words that other programs have for a key of a table.
func wordsElsewhere(path, key string) []string {
	if last := strings.LastIndex(key, "."); last >= 0 {
		path, key = path+"."+key[:last], key[last+1:]
	}
	return names.Words(key, path)
}

// pipelineOf is a pipeline that leaves all to a preset.
func pipelineOf(preset string) string {
	return fmt.Sprintf("rlhost = 1\n[run]\nname = \"page\"\n[env.it]\nuse = \"pendulum@1\"\n[train]\npreset = %q\nenv = \"it\"\n", preset)
}

// presetValues is a table of the keys that presets change.
func presetValues(parts *graph.Parts, presets []string) (string, error) {
	values := map[string][]string{}
	for i, name := range presets {
		g, problems := graph.Parse("page.toml", []byte(pipelineOf(name)), graph.ParseOptions{Parts: parts})
		if g == nil {
			return "", problems
		}
		keys, err := graph.Keys([]byte(g.Expanded()))
		if err != nil {
			return "", err
		}
		for key, value := range keys {
			if !strings.HasPrefix(key, "component.") && !strings.HasPrefix(key, "policy.") && key != "train.mode" {
				continue
			}
			if values[key] == nil {
				values[key] = make([]string, len(presets))
			}
			values[key][i] = markdown.Code(value)
		}
	}
	var rows [][]string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if v := values[key]; len(slices.Compact(slices.Clone(v))) > 1 {
			rows = append(rows, append([]string{markdown.Code(key)}, v...))
		}
	}
	header := []string{"Key"}
	for _, name := range presets {
		header = append(header, markdown.Code(name))
	}
	return markdown.Table(header, rows), nil
}
