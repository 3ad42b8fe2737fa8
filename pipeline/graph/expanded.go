package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
)

// lines writes out the keys that differ from the defaults.
func (p *PluginTable) lines() []keyValue {
	all, defaults := encodeStruct(reflect.ValueOf(*p)), encodeStruct(reflect.ValueOf(DefaultPlugin()))
	var list []keyValue
	for i, kv := range all {
		if kv != defaults[i] {
			list = append(list, kv)
		}
	}
	return list
}

// Hash returns the SHA-256 of Expanded, in hexadecimal: two files with the same hash mean the same run.
func (g *Graph) Hash() string {
	sum := sha256.Sum256([]byte(g.Expanded()))
	return hex.EncodeToString(sum[:])
}

// Expanded returns the pipeline as a TOML file with everything written out: presets, defaults, and one [[wire]]
// for each signal and way of delivery. It parses to the same graph.
func (g *Graph) Expanded() string {
	var b strings.Builder
	writeVersion(&b)
	g.eachTable(func(name string, lines []keyValue) { writeTable(&b, name, lines) })
	g.writeWires(&b)
	return b.String()
}

// Keys returns all that Expanded writes, a key of a table at a time: component.learner.epochs, for instance, with its value as
// TOML. A wire is the table of that name, with its signal and its slot.
func (g *Graph) Keys() map[string]string {
	keys := map[string]string{}
	g.eachTable(func(name string, lines []keyValue) {
		for _, kv := range lines {
			keys[name+"."+quoteKey(kv.Key)] = kv.Value
		}
	})
	for i := range g.Wires {
		w := &g.Wires[i]
		for _, kv := range w.lines(quote(component.Qualified(w.To, w.Slot))) {
			keys["wire "+w.String()+"."+kv.Key] = kv.Value
		}
	}
	return keys
}

// Resolved is Expanded with comments on top of it that name the files and the variables of the environment that the graph was made of.
func (g *Graph) Resolved() string { return g.origin.lines() + g.Expanded() }

func writeVersion(b *strings.Builder) { fmt.Fprintf(b, "rlhost = %d\n", formatVersion) }

func writeTable(b *strings.Builder, header string, lines []keyValue) {
	fmt.Fprintf(b, "\n[%s]\n", header)
	writeLines(b, lines)
}

func writeLines(b *strings.Builder, lines []keyValue) {
	for _, kv := range lines {
		fmt.Fprintf(b, "%s = %s\n", quoteKey(kv.Key), literalValue(kv.Value))
	}
}

// lines returns the keys of a component with all defaults. The count of a component that its group counts is its group's.
func (x *Component) lines(counted bool) []keyValue {
	lines := []keyValue{{Key: "kind", Value: quote(x.Kind)}}
	if !counted {
		lines = append(lines, keyValue{Key: "count", Value: strconv.Itoa(x.Count)})
	}
	lines = append(lines, keyValue{Key: "loop", Value: quote(x.Loop)})
	if x.Plugin != "" && !x.implied {
		lines = append(lines, keyValue{Key: "plugin", Value: quote(x.Plugin)})
	} else if !x.implied && (x.Runtime != RuntimeBuiltin || x.stays) {
		lines = append(lines, keyValue{Key: "runtime", Value: quote(x.Runtime)})
	}
	if x.Module != nil {
		lines = append(lines, x.Module.lines()...)
	}
	lines = append(lines, keyValue{Key: "swap", Value: quote(string(x.Swap))})
	lines = append(lines, encodeStruct(reflect.ValueOf(x.Place))...)
	lines = append(lines, hostLines(x.Hosts)...)
	lines = append(lines, x.askLines()...)
	return append(lines, configLines(x.config, x.table, x.ownKeys()...)...)
}

func (g *Graph) runLines() []keyValue {
	r := g.Run
	f := runFile{Name: r.Name, Seed: r.Seed, Dir: r.Dir, Record: r.Record, Stop: r.Stop, Checkpoint: r.Checkpoint, Evaluation: r.Evaluation, Traces: r.Traces}
	if r.Policy != "" {
		f.Policy = &r.Policy
	}
	return encodeStruct(reflect.ValueOf(f))
}

// lines leaves out defaults; a limit's default is the runtime's.
func (e *Env) lines() []keyValue {
	t := e.Table.Source
	if e.Table.Plugin != nil {
		t.Use = e.Table.Plugin.Name + ":" + t.Use
	}
	standard := encodeStruct(reflect.ValueOf(env.DefaultSource()))
	lines := []keyValue{{Key: "use", Value: quote(t.Use)}, {Key: "swap", Value: quote(string(e.Swap))}}
	for i, kv := range encodeStruct(reflect.ValueOf(t)) {
		if kv.Key != "use" && kv != standard[i] {
			lines = append(lines, kv)
		}
	}
	return lines
}

// writeWires writes neighbouring wires of one signal with the same options as one.
func (g *Graph) writeWires(b *strings.Builder) {
	for i := 0; i < len(g.Wires); {
		w := g.Wires[i]
		var slots []string
		for ; i < len(g.Wires) && g.Wires[i].sameButSlot(&w); i++ {
			slots = append(slots, quote(component.Qualified(g.Wires[i].To, g.Wires[i].Slot)))
		}
		slot := slots[0]
		if len(slots) > 1 {
			slot = "[" + strings.Join(slots, ", ") + "]"
		}
		b.WriteString("\n[[wire]]\n")
		writeLines(b, w.lines(slot))
	}
}

// lines returns the keys of a wire to a slot, or to several.
func (w *Wire) lines(slot string) []keyValue {
	lines := []keyValue{
		{Key: "signal", Value: quote(component.Qualified(w.From, w.Signal))}, {Key: "slot", Value: slot}, {Key: "mode", Value: quote(w.Mode.String())},
		{Key: "depth", Value: strconv.Itoa(w.Depth)}, {Key: "on_full", Value: quote(w.OnFull.String())},
	}
	if component.PayloadOf(w.Payload).AnsweredBy != "" && w.Answer != DefaultAnswer {
		lines = append(lines, keyValue{Key: "answer", Value: quote(w.Answer.String())})
	}
	if len(w.Write) > 0 {
		lines = append(lines, keyValue{Key: "write", Value: quoteList(w.Write)})
	}
	return lines
}

func (w *Wire) sameButSlot(o *Wire) bool {
	return w.From == o.From && w.Signal == o.Signal && w.Mode == o.Mode && w.Depth == o.Depth && w.OnFull == o.OnFull && w.Answer == o.Answer && slices.Equal(w.Write, o.Write)
}

// eachTable calls fn with all tables but the wires, in the order of Expanded.
func (g *Graph) eachTable(fn func(name string, lines []keyValue)) {
	fn("run", g.runLines())
	fn("train", []keyValue{{Key: "mode", Value: quote(g.Mode())}})
	fn("swap", encodeStruct(reflect.ValueOf(g.Swap.file())))
	if lines := g.clusterLines(); len(lines) > 0 {
		fn("cluster", lines)
	}
	for _, p := range g.Plugins {
		if p.implied {
			continue
		}
		fn("plugin."+p.Table.Name, p.Table.lines())
	}
	for _, e := range g.Envs {
		fn("env."+e.Name, e.lines())
	}
	for _, p := range g.Policies {
		fn("policy."+quoteKey(p.Name), p.lines())
	}
	for i := range g.Groups {
		fn("group."+g.Groups[i].Name, g.Groups[i].lines())
	}
	for i := range g.Components {
		x := &g.Components[i]
		group := g.GroupOfComponent(x.Name)
		fn("component."+x.Name, x.lines(group != nil && group.Count > 0))
	}
}
