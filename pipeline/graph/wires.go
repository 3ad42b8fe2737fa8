package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
)

// placedName is one string of a key that takes a string or a list of strings.
type placedName struct {
	text     string
	at       Span
	everyone bool // of a wire's end: from *.PORT
}

// everyone stands for each component at a wire's end.
const everyone = "*"

// port finds the component and the port that a wire's end names.
func (r *wireReader) port(end placedName, slot bool) (owner string, port component.Port, ok bool) {
	owner, portName, qualified := component.SplitQualified(end.text)
	x := r.check.graph.Component(owner)
	switch {
	case r.check.broken["component."+owner] || r.check.bad["component"]:
		return "", port, false
	case x == nil:
		r.unknownComponent(end, owner, portName, slot, qualified)
		return "", port, false
	}
	mine, others := x.Manifest.Signals, x.Manifest.Slots
	if slot {
		mine, others = others, mine
	}
	if i := findPort(mine, portName); i >= 0 {
		return owner, mine[i], true
	}
	if r.check.unsure[owner] {
		return "", port, false
	}
	what, other, code := "signal", "slot", "E031"
	if slot {
		what, other, code = "slot", "signal", "E032"
	}
	if findPort(others, portName) >= 0 {
		r.check.Add("E033", end.at, "swap `signal` and `slot`", "%q is a %s of %s, not a %s", end.text, other, x.Kind, what)
		return "", port, false
	}
	if key := x.offers[portName]; key != "" {
		r.check.Add(code, end.at, fmt.Sprintf("write %s = true in [component.%s]", key, owner), "%s %q has no %s %q without `%s`", x.Kind, owner, what, portName, key)
		return "", port, false
	}
	r.check.Add(code, end.at, suggestPort(owner, portName, what, mine), "%s %q has no %s %q", x.Kind, owner, what, portName)
	return "", port, false
}

func findPort(ports []component.Port, name string) int {
	return slices.IndexFunc(ports, func(p component.Port) bool { return p.Name == name })
}

func suggestPort(owner, port, what string, ports []component.Port) string {
	var list []string
	for _, p := range ports {
		list = append(list, p.Name)
	}
	if best, ok := table.Nearest(port, list); ok {
		return suggest(component.Qualified(owner, best))
	}
	if len(list) == 0 {
		return "it has no " + what + "s"
	}
	for i := range list {
		list[i] = component.Qualified(owner, list[i])
	}
	return what + "s: " + strings.Join(list, ", ")
}

func (r *wireReader) unknownComponent(end placedName, owner, port string, slot, qualified bool) {
	if !qualified {
		r.check.Add("E030", end.at, `write "component.port"`, "%q does not name a port of a component", end.text)
		return
	}
	names := r.check.declared("component")
	help := table.DidYouMean("", "%q", "declared", names)
	owners := r.owners(port, slot)
	best, ok := table.Nearest(owner, owners)
	if !ok && len(owners) == 1 {
		best, ok = owners[0], true
	}
	if !ok && len(owners) == 0 {
		best, ok = table.Nearest(owner, names)
	}
	if ok {
		help = suggest(component.Qualified(best, port))
	}
	r.check.Add("E030", end.at, help, "component %q is not declared", owner)
}

// owners names the components that have a port.
func (r *wireReader) owners(port string, slot bool) []string {
	var list []string
	for _, x := range r.check.graph.Components {
		ports := x.Manifest.Signals
		if slot {
			ports = x.Manifest.Slots
		}
		if findPort(ports, port) >= 0 {
			list = append(list, x.Name)
		}
	}
	return list
}

// wireFile has the keys of a [[wire]] table, whose ends may be lists.
type wireFile struct {
	Signal  string        `toml:"signal" type:"text or list of texts" default:"required" doc:"Port that messages come from, as COMPONENT.SIGNAL; *.SIGNAL is that of each component which has it."`
	Slot    string        `toml:"slot" type:"text or list of texts" default:"required" doc:"Port that messages go to, as COMPONENT.SLOT; *.SLOT is that of each other component which has it."`
	Mode    string        `toml:"mode" default:"by payload" range:"all, queue, latest, reply" doc:"all: each receiver gets each message. queue: one receiver does. latest: each receiver gets the newest message alone. reply: the component that asked does."`
	Depth   int           `toml:"depth" default:"by payload" range:"1 to 65,536" unit:"messages" doc:"Messages that may wait."`
	OnFull  string        `toml:"on_full" default:"by payload" range:"block, drop_newest, drop_oldest, coalesce, fail" doc:"Effect of a message that finds the wire full."`
	Answer  time.Duration `toml:"answer" default:"\"30s\"" doc:"Longest wait for an answer to a question."`
	Replace bool          `toml:"replace" doc:"Takes the place of the preset's wires of this signal."`
	Write   []string      `toml:"write" range:"columns of the payload" doc:"Columns of the message's block that the receiver may write."`
}

var (
	wireKeys  = table.Keys(&wireFile{})
	modeNames = []string{"all", "queue", "latest", "reply"}
	fullNames = []string{"block", "drop_newest", "drop_oldest", "coalesce", "fail"}
)

// pair is one signal and one slot of a [[wire]].
type pair struct {
	table        *node
	signal, slot placedName
	layer        int  // order of the source: a preset and files that the file extends have higher ones
	replaces     bool // replaces one of a higher layer
}

// maxWires bounds the pairs of signals and slots.
const maxWires = 4096

// wireReader reads the [[wire]] tables.
type wireReader struct{ check *checker }

// wireTables reads [[wire]].
func (r *wireReader) wireTables() {
	var pairs []pair
	index := map[[2]string]int{}
	if n := r.check.root.at("wire"); n != nil {
		for _, w := range n.items {
			for _, p := range r.pairs(w, maxWires-len(pairs)) {
				pairs = r.addPair(pairs, index, p)
			}
		}
	}
	pairs = r.replaceWires(pairs)
	r.setWires(pairs)
	for _, p := range pairs {
		r.wire(p)
	}
	r.checkGrants()
}

// pairs checks the keys of one [[wire]] and returns each signal with each slot, if there is room for so many.
func (r *wireReader) pairs(w *node, room int) []pair {
	for _, key := range w.names {
		if !slices.Contains(wireKeys, key) {
			r.check.unknownKey(w.table[key], key, "[wire]", wireKeys)
		}
	}
	signals, slots := r.each(r.nameList(w, "signal"), false), r.each(r.nameList(w, "slot"), true)
	if len(signals)*len(slots) > room {
		r.check.Add("E005", w.key, "", "there are more than %d wires up to this one", maxWires)
		return nil
	}
	var list []pair
	for _, signal := range signals {
		for _, slot := range slots {
			if (signal.everyone || slot.everyone) && ownerOf(signal) == ownerOf(slot) {
				continue
			}
			list = append(list, pair{table: w, signal: signal, slot: slot, layer: w.key.order()})
		}
	}
	return list
}

func ownerOf(end placedName) string {
	owner, _, _ := component.SplitQualified(end.text)
	return owner
}

// each replaces *.PORT by that port of each component which has it.
func (r *wireReader) each(ends []placedName, slot bool) (list []placedName) {
	for _, end := range ends {
		owner, port, _ := component.SplitQualified(end.text)
		if owner != everyone {
			list = append(list, end)
			continue
		}
		owners := r.owners(port, slot)
		if len(owners) == 0 && len(r.check.broken) == 0 && !slices.Contains(slices.Collect(maps.Values(r.check.unsure)), true) {
			code, what := "E031", "signal"
			if slot {
				code, what = "E032", "slot"
			}
			r.check.Add(code, end.at, "", "no component has a %s %q", what, port)
		}
		for _, owner := range owners {
			list = append(list, placedName{text: component.Qualified(owner, port), at: end.at, everyone: true})
		}
	}
	return list
}

// nameList reads the ports of one end.
func (r *wireReader) nameList(w *node, key string) []placedName {
	n := w.at(key)
	if n == nil {
		r.check.Add("E004", w.key, "", "`%s` is missing in [[wire]]", key)
		return nil
	}
	return r.names(n, key, `write "component.`+key+`"`)
}

// names reads a string or a list of strings.
func (r *wireReader) names(n *node, key, help string) []placedName {
	items := []*node{n}
	if n.kind == arrayNode {
		items = n.items
	}
	if len(items) == 0 {
		r.check.Add("E004", n.val, "", "`%s` is an empty list", key)
	}
	var list []placedName
	for _, item := range items {
		s, ok := item.text()
		if !ok {
			r.check.wrong(item, key, "a string or a list of strings", help)
			continue
		}
		list = append(list, placedName{text: s, at: item.val})
	}
	return list
}

// addPair adds a pair. One of the file replaces the same one of what the file extends and of the preset; twice in the file is an error.
func (r *wireReader) addPair(pairs []pair, index map[[2]string]int, p pair) []pair {
	key := [2]string{p.signal.text, p.slot.text}
	i, known := index[key]
	switch {
	case !known:
		index[key] = len(pairs)
		return append(pairs, p)
	case pairs[i].layer > p.layer:
		p.replaces = true
		pairs[i] = p
	default:
		r.check.Add("E006", p.slot.at, "", "%q is wired to %q twice", p.signal.text, p.slot.text)
	}
	return pairs
}

// replaceWires takes out the wires of each signal that a wire of the file has with replace = true, of the preset and of what the file
// extends: so a component can be put between two of the preset's.
func (r *wireReader) replaceWires(pairs []pair) []pair {
	replaced := map[string]int{} // lowest layer that replaces a signal's wires
	for _, p := range pairs {
		n := p.table.at("replace")
		if n == nil {
			continue
		}
		replace, ok := n.value.(bool)
		if !ok {
			r.check.wrong(n, "replace", "true or false", "")
		}
		if !replace {
			continue
		}
		if layer, ok := replaced[p.signal.text]; !ok || p.layer < layer {
			replaced[p.signal.text] = p.layer
		}
		higher := func(o pair) bool { return o.layer > p.layer && o.signal.text == p.signal.text }
		if !p.replaces && !slices.ContainsFunc(pairs, higher) {
			r.check.Add("E005", n.val, "leave it out", "`replace` is true, but no preset wires %q", p.signal.text)
		}
	}
	return slices.DeleteFunc(pairs, func(p pair) bool {
		layer, ok := replaced[p.signal.text]
		return ok && p.layer > layer
	})
}

// setWires applies --set wire.COMPONENT.SIGNAL.KEY=VALUE to all wires of that signal, and wire.COMPONENT.SIGNAL.TO.SLOT.KEY=VALUE to
// the one that leads to a slot.
func (r *wireReader) setWires(pairs []pair) {
	var signals []string
	for _, p := range pairs {
		signals = append(signals, p.signal.text)
	}
	for _, a := range r.check.wireSets {
		whole := Span{a.spans[0].src, a.spans[0].off, a.spans[len(a.spans)-1].end}
		if len(a.path) != 4 && len(a.path) != 6 {
			r.check.Add("E008", whole, "write wire.COMPONENT.SIGNAL.KEY, such as wire.rollout.trajectories.depth, or for the one wire to a slot "+
				"wire.COMPONENT.SIGNAL.TO.SLOT.KEY", "this is no key of a wire")
			continue
		}
		signal := component.Qualified(a.path[1], a.path[2])
		if r.check.bad["wire"] {
			continue
		}
		if !slices.Contains(signals, signal) {
			r.check.Add("E008", whole, table.DidYouMean(signal, "`%s`", "wired", unique(signals)), "no wire has the signal %q", signal)
			continue
		}
		last := len(a.path) - 1
		slot, ok := r.setSlot(&a, signal, pairs)
		if !ok {
			continue
		}
		if key := a.path[last]; !slices.Contains(wireKeys[2:6], key) {
			r.check.Add("E008", a.spans[last], table.DidYouMean(key, "`%s`", "keys", wireKeys[2:6]), "`%s` of a wire cannot be set", key)
			continue
		}
		for i := range pairs {
			if pairs[i].signal.text == signal && (slot == "" || pairs[i].slot.text == slot) {
				pairs[i].table = with(pairs[i].table, a.path[last], a.value)
			}
		}
	}
}

// setSlot returns the slot that an assignment to a wire names, empty for all; ok is false where the signal is not wired to it.
func (r *wireReader) setSlot(a *assignment, signal string, pairs []pair) (slot string, ok bool) {
	if len(a.path) == 4 {
		return "", true
	}
	slot = component.Qualified(a.path[3], a.path[4])
	var slots []string
	for _, p := range pairs {
		if p.signal.text == signal {
			slots = append(slots, p.slot.text)
		}
	}
	if slices.Contains(slots, slot) {
		return slot, true
	}
	at := Span{a.spans[3].src, a.spans[3].off, a.spans[4].end}
	r.check.Add("E008", at, table.DidYouMean(slot, "`%s`", "slots", unique(slots)), "no wire leads from %q to %q", signal, slot)
	return "", false
}

// with returns a copy of a table with one key changed.
func with(table *node, key string, value *node) *node {
	t := *table
	t.names, t.table = slices.Clone(t.names), maps.Clone(t.table)
	t.put(key, value)
	return &t
}

// wire checks one pair and adds it to the graph.
func (r *wireReader) wire(p pair) {
	w := Wire{signalAt: p.signal.at, SlotAt: p.slot.at, depthAt: p.table.key}
	since := len(r.check.list)
	r.wireOptions(p.table, &w)
	from, out, fromOK := r.port(p.signal, false)
	to, in, toOK := r.port(p.slot, true)
	if !fromOK || !toOK {
		return
	}
	if out.Payload != in.Payload {
		r.check.Add("E040", p.slot.at, r.otherSlots(out.Payload), "payloads differ: %s sends %s, %s takes %s",
			p.signal.text, out.Payload, p.slot.text, in.Payload)
	} else if sends, takes := out.Agreed(), in.Agreed(); sends != 0 && takes != 0 && sends != takes {
		r.check.Add("E040", p.slot.at, "build both against the same description of the payload",
			"payloads differ: both are %s, of schema %016x at %s and %016x at %s", out.Payload, sends, p.signal.text, takes, p.slot.text)
	}
	if r.check.failed(since) {
		return
	}
	w.From, w.Signal, w.To, w.Slot, w.Payload = from, out.Name, to, in.Name, out.Payload
	fillDelivery(p.table, &w)
	r.newest(p.table, &w)
	r.grant(p.table, &w)
	r.answer(p.table, &w)
	r.check.graph.Wires = append(r.check.graph.Wires, w)
}

// otherSlots names the slots that take a payload.
func (r *wireReader) otherSlots(payload string) string {
	var list []string
	for _, x := range r.check.graph.Components {
		for _, p := range x.Manifest.Slots {
			if p.Payload == payload {
				list = append(list, component.Qualified(x.Name, p.Name))
			}
		}
	}
	if len(list) == 0 {
		return ""
	}
	return payload + " is taken by " + strings.Join(list, ", ")
}

// wireOptions reads mode, depth and on_full, each of which may be left out.
func (r *wireReader) wireOptions(t *node, w *Wire) {
	w.Mode, _ = bus.ParseMode(r.word(t, "mode", "E034", modeNames))
	w.OnFull, _ = bus.ParseOverflow(r.word(t, "on_full", "E035", fullNames))
	r.depth(t, w)
}

// newest rejects what contradicts mode "latest".
func (r *wireReader) newest(t *node, w *Wire) {
	if w.Mode != bus.Latest {
		return
	}
	if w.OnFull != bus.Coalesce {
		r.check.Add("E035", t.at("on_full").val, `write on_full = "coalesce"`,
			"mode \"latest\" keeps the newest message, on_full = %q contradicts it", w.OnFull.String())
	}
	if w.Depth > 1 {
		r.check.Add("E036", t.at("depth").val, "write depth = 1", "mode \"latest\" keeps one message, depth = %d contradicts it", w.Depth)
	}
}

// word reads a key that takes one of a few words; empty where the table has none of them.
func (r *wireReader) word(t *node, key, code string, words []string) string {
	n := t.at(key)
	if n == nil {
		return ""
	}
	word, ok := n.text()
	if !ok {
		r.check.wrong(n, key, "a string", "")
		return ""
	}
	if !slices.Contains(words, word) {
		r.check.Add(code, n.val, table.DidYouMean(word, "%q", key+" can be", words), "unknown %s %q", key, word)
		return ""
	}
	return word
}

func (r *wireReader) depth(t *node, w *Wire) {
	n := t.at("depth")
	if n == nil {
		return
	}
	w.depthAt = n.val
	d, ok := n.value.(int64)
	switch {
	case !ok || n.kind != scalarNode:
		r.check.wrong(n, "depth", "an integer", "")
	case d < 1:
		r.check.Add("E036", n.val, "", "`depth` is %d, must be 1 or more", d)
	case d > 1<<20:
		r.check.Add("E036", n.val, "", "`depth` is %d, must be %d or less", d, 1<<20)
	default:
		w.Depth = int(d)
	}
}

// answer reads how long an answer to a message of the wire may take.
func (r *wireReader) answer(t *node, w *Wire) {
	n, asks := t.at("answer"), component.PayloadOf(w.Payload).AnsweredBy != ""
	if asks {
		w.Answer = DefaultAnswer
	}
	if n == nil {
		return
	}
	text, ok := n.text()
	limit, err := time.ParseDuration(text)
	switch {
	case !ok || err != nil:
		r.check.wrong(n, "answer", `a duration such as "30s", or "0s" for ever`, "")
	case !asks:
		r.check.Add("E005", n.val, "leave `answer` out", "nobody answers messages with payload %s", w.Payload)
	case limit != 0 && limit < time.Millisecond:
		r.check.Add("E005", n.val, `write "30s", or "0s" for ever`, "`answer` is %v, want 1ms or more", limit)
	default:
		w.Answer = limit
	}
}

// grant reads which columns a wire lets its receiver write in the blocks of its messages.
func (r *wireReader) grant(t *node, w *Wire) {
	n := t.at("write")
	if n == nil {
		return
	}
	w.writeAt = n.val
	can := component.PayloadOf(w.Payload).Grantable
	for _, column := range r.names(n, "write", `write ["reward"]`) {
		switch {
		case len(can) == 0:
			r.check.Add(component.CodeGrant, column.at, "leave `write` out", "only their maker writes blocks with payload %s", w.Payload)
		case !slices.Contains(can, kindOf(column.text)):
			r.check.Add(component.CodeGrant, column.at, "of a "+w.Payload+" can be granted: "+strings.Join(can, ", "), "%q cannot be granted", column.text)
		}
		w.Write = append(w.Write, column.text)
	}
	slices.Sort(w.Write)
	w.Write = slices.Compact(w.Write)
	if w.Mode != bus.Queue && !component.PayloadOf(w.Payload).OnLoan {
		at := n.val
		if mode := t.at("mode"); mode != nil {
			at = mode.val
		}
		r.check.Add(component.CodeGrant, at, `write mode = "queue"`, "a block that is written must have one receiver, mode %q gives it to several", w.Mode.String())
	}
}

// kindOf returns the name of a column without its index.
func kindOf(column string) string {
	kind, _, _ := strings.Cut(column, "/")
	return kind
}

// checkGrants compares wires: a block that one component writes must go to no other, and a component cannot tell by which
// of its slot's wires a message came.
func (r *wireReader) checkGrants() {
	for i := range r.check.graph.Wires {
		w := &r.check.graph.Wires[i]
		if len(w.Write) == 0 {
			continue
		}
		for j := range r.check.graph.Wires {
			o := &r.check.graph.Wires[j]
			switch {
			case i == j:
			case o.From == w.From && o.Signal == w.Signal && o.Mode != bus.Queue && !component.PayloadOf(w.Payload).OnLoan:
				r.check.Add(component.CodeGrant, w.writeAt, "leave `write` out, or wire that slot to what "+w.To+" sends",
					"%s gets each block as well, while it is written", component.Qualified(o.To, o.Slot))
			case o.To == w.To && o.Slot == w.Slot && !slices.Equal(o.Write, w.Write):
				r.check.Add(component.CodeGrant, w.writeAt, "write the same `write` in both", "%q leads to the same slot and does not grant the same", o.String())
			}
		}
	}
}
