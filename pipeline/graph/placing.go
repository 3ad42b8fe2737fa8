package graph

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/place"
	"github.com/rlhost/rlhost/core/table"
)

// Codes of places that cannot be had: where something is to run, and where a file is only read.
const (
	CodePlace   = "E129"
	CodeNoPlace = "W112"
)

// CodeNoGain is the code of placements that cost time, or do nothing.
const CodeNoGain = "W113"

// Group is a [group.NAME] table: components that are placed and counted together.
type Group struct {
	Name       string
	Components []string
	Count      int // instances of each member, wired one to one; 0: each has its own count
	Place      place.Place
	Hosts      HostRule

	table *node
}

// groupFile is a [group.NAME] table as written in the file.
type groupFile struct {
	Components []string `toml:"components" doc:"Components of the group." default:"required"`
	Count      int      `toml:"count,omitempty" doc:"Instances of each member: wires between members lead from each to the one of the same number. 0 = as each member says, wired to all." range:"0 to 1024" default:"0"`
	place.Place
	Hosts HostRule `toml:"place,omitempty" doc:"Which hosts of the run may have its instances." range:"pack, spread or a table" default:"the run's own"`
}

// lines writes out the keys that differ from the defaults.
func (g *Group) lines() []keyValue {
	f := groupFile{Components: g.Components, Count: g.Count, Place: g.Place, Hosts: g.Hosts}
	return encodeStruct(reflect.ValueOf(f))
}

// GroupOfComponent returns the group that a component is in, or nil.
func (g *Graph) GroupOfComponent(name string) *Group {
	i := slices.IndexFunc(g.Groups, func(o Group) bool { return slices.Contains(o.Components, name) })
	if i < 0 {
		return nil
	}
	return &g.Groups[i]
}

// Group returns the group of that name, or nil.
func (g *Graph) Group(name string) *Group {
	i := slices.IndexFunc(g.Groups, func(o Group) bool { return o.Name == name })
	if i < 0 {
		return nil
	}
	return &g.Groups[i]
}

// PlaceOf returns where the instances of a component run: as its table says, else its group, else its plugin.
func (g *Graph) PlaceOf(x *Component) place.Place {
	p := x.Place
	if group := g.GroupOfComponent(x.Name); group != nil {
		p = p.Or(group.Place)
	}
	if x.Runtime != RuntimeProcess {
		return place.Place{Cores: p.Cores} // threads and priority are a process's
	}
	if plugin := g.Plugin(x.Plugin); plugin != nil {
		p = p.Or(plugin.Table.Place)
	}
	return p
}

// PlaceOf returns where the processes of an environment run: as its table says, else its plugin. Without processes it is the zero value.
func (t *EnvTable) PlaceOf() place.Place {
	if !t.Isolated() {
		return place.Place{}
	}
	p := t.Source.Place()
	if t.Plugin != nil {
		p = p.Or(t.Plugin.Place)
	}
	return p
}

// placeChanges lists how the place of a component differs in the next graph.
func (g *Graph) placeChanges(next *Graph, was, of *Component) []string {
	return lineChanges(encodeStruct(reflect.ValueOf(g.PlaceOf(was))), encodeStruct(reflect.ValueOf(next.PlaceOf(of))))
}

// placeReader reads groups, and the keys that say where things run.
type placeReader struct{ check *checker }

// groupTables reads [group.NAME], and gives each member its count and, with a preset, an event loop for each of its instances.
func (r *placeReader) groupTables() {
	in := map[string]string{}
	for _, t := range r.check.named("group") {
		var f groupFile
		path := "group." + t.name
		d := &tableDecoder{report: &r.check.Report, n: t.node, path: path}
		d.decode(&f) // errors have been noted
		r.check.atLeast(t.node, "count", f.Count, 0)
		r.check.atMost(t.node, "count", f.Count, maxCount)
		if f.Count < 0 || f.Count > maxCount {
			f.Count = 0
		}
		r.place(t.node, path, &f.Place)
		r.hosts(t.node, path, &f.Hosts)
		if slices.Contains(r.check.declared("component"), t.name) {
			r.check.Add("E006", t.node.key, "choose another name", "a component has the name of group %q: `rlhost scale %s` would mean both", t.name, t.name)
		}
		g := Group{Name: t.name, Count: f.Count, Place: f.Place, Hosts: f.Hosts, table: t.node}
		if n := t.node.at("components"); n == nil || n.kind == arrayNode && len(n.items) == 0 {
			r.check.Add("E004", t.node.key, `name its components: components = ["rollout", "inference"]`, "`components` is missing in [%s]", path)
		} else if n.kind == arrayNode {
			g.Components = r.members(&g, n, in)
		}
		r.check.graph.Groups = append(r.check.graph.Groups, g)
	}
}

// members returns the components that a group names, each once.
func (r *placeReader) members(g *Group, list *node, in map[string]string) (names []string) {
	declared := r.check.declared("component")
	for _, item := range list.items {
		name, ok := item.text()
		switch {
		case !ok || r.check.bad["component"]:
		case !slices.Contains(declared, name):
			r.check.Add("E011", item.val, table.DidYouMean(name, "%q", "declared", declared), "component %q is not declared", name)
		case in[name] != "":
			r.check.Add("E006", item.val, "leave one of them out", "component %q is in group %q already", name, in[name])
		default:
			in[name] = g.Name
			names = append(names, name)
			r.count(g, name)
		}
	}
	return names
}

// count gives a member of a group its number of instances. A loop that a preset names becomes one for each of them.
func (r *placeReader) count(g *Group, name string) {
	x := r.check.root.at("component").at(name)
	if g.Count == 0 || x.kind != tableNode {
		return
	}
	if own := x.at(keyHosts); own != nil {
		r.check.Add("E005", own.val, fmt.Sprintf("move it to [group.%s]", g.Name), "component %q has `%s` of its own, and its group %q keeps pairs together", name, keyHosts, g.Name)
	}
	at := g.table.at("count")
	if own := x.at("count"); own != nil && own.val.order() < firstPreset {
		r.check.Add("E005", own.val, fmt.Sprintf("leave it out, or `count` of [group.%s]", g.Name),
			"`count` of component %q is that of its group %q", name, g.Name)
		return
	}
	x.put("count", &node{kind: scalarNode, key: at.key, val: at.val, value: int64(g.Count)})
	if loop, ok := x.at("loop").text(); ok && x.at("loop").val.order() >= firstPreset && loop == trimIndex(loop) {
		x.put("loop", scalarAt(x.at("loop").val, loop+indexSuffix))
	}
}

// place checks the keys of a table that say where something runs; what is wrong is taken out.
func (r *placeReader) place(n *node, path string, p *place.Place) {
	if at := n.at("cores"); at != nil {
		_, ok := at.text()
		cores, err := place.ParseCores(p.Cores)
		switch {
		case !ok: // noted
		case err != nil:
			r.check.Add("E005", at.val, `write numbers and ranges: cores = "0-3,6"`, "`%s.cores` is %q: %v", path, p.Cores, err)
			p.Cores = ""
		default:
			p.Cores = cores.String()
		}
	}
	if at := n.at("nice"); at != nil && (p.Nice < place.MinNice || p.Nice > place.MaxNice) {
		r.check.Add("E005", at.val, "", "`%s.nice` is %d, want %d to %d", path, p.Nice, place.MinNice, place.MaxNice)
		p.Nice = 0
	}
	if at := n.at("threads"); at != nil {
		if count, ok := at.value.(int64); ok && (count < 1 || count > place.MaxThreads) {
			r.check.Add("E005", at.val, "leave it out for as many as the libraries like", "`%s.threads` is %d, want 1 to %d", path, count, place.MaxThreads)
			p.Threads = 0
		}
	}
}

// own checks the place of a component's table: priority and threads are a process's.
func (r *placeReader) own(n *node, x *Component) {
	path := "component." + x.Name
	r.place(n, path, &x.Place)
	r.hosts(n, path, &x.Hosts)
	if x.Runtime == RuntimeProcess {
		return
	}
	for _, key := range []string{"nice", "threads"} {
		if at := n.at(key); at != nil {
			r.check.Add(CodePlace, at.key, processHelp(x), "`%s.%s` is for a process, and the component runs in rlhost's own", path, key)
		}
	}
}

// processHelp says how a component gets a process of its own.
func processHelp(x *Component) string {
	if x.Runtime == RuntimeWasm {
		return "leave it out: a module runs on one thread of rlhost"
	}
	return `leave it out, or give the component a process: runtime = "process"`
}

// env checks the place of an environment's table, which is that of its processes.
func (r *placeReader) env(n *node, name string, f *envFile, isolated bool) {
	p := f.Source.Place()
	r.place(n, "env."+name, &p)
	f.Cores, f.Nice = p.Cores, p.Nice
	r.check.atLeast(n, "library_threads", f.LibraryThreads, 1)
	r.check.atMost(n, "library_threads", f.LibraryThreads, place.MaxThreads)
	for _, key := range []string{"cores", "nice", "library_threads"} {
		if at := n.at(key); at != nil && !isolated {
			r.check.Add(CodePlace, at.key, `add runtime = "process"; or place the loop of its rollout: cores in [component.rollout]`,
				"`env.%s.%s` is for processes, and the environments run in rlhost's own", name, key)
		}
	}
}

// loops rejects different processors of one event loop, which has one thread.
func (r *placeReader) loops() {
	type owner struct{ name, cores string }
	of := map[string]owner{}
	for i := range r.check.graph.Components {
		x := &r.check.graph.Components[i]
		cores := r.check.graph.PlaceOf(x).Cores
		if cores == "" || x.Runtime == RuntimeProcess {
			continue
		}
		was, taken := of[x.Loop]
		if taken && was.cores != cores {
			help := "give both the same cores, or each a loop of its own: loop = " + quote(x.Name)
			if r.check.graph.Synchronous {
				help = "give both the same cores: in sync mode all components share one loop"
			}
			r.check.Add(CodePlace, r.check.graph.placedAt(x, "cores"), help, "the event loop %q has one thread: cores %s of %q, and %s of %q",
				x.Loop, was.cores, was.name, cores, x.Name)
		}
		of[x.Loop] = owner{x.Name, cores}
	}
}

// wires notes which wires lead from each instance to the one of the same number, and warns of groups without such wires.
func (r *placeReader) wires() {
	linked := map[string]bool{}
	for i := range r.check.graph.Wires {
		w := &r.check.graph.Wires[i]
		if g := r.check.graph.GroupOfComponent(w.From); g != nil && g.Count > 0 && slices.Contains(g.Components, w.To) {
			w.Paired = true
			linked[g.Name] = true
		}
	}
	for i := range r.check.graph.Groups {
		if g := &r.check.graph.Groups[i]; g.Count > 1 && !linked[g.Name] && !r.check.failed(0) {
			r.check.Add(CodeNoGain, g.table.at("count").val, "leave `count` to the components", "no wire leads from one member of group %q to another: nothing is wired one to one", g.Name)
		}
	}
}

// placedAt is where the file says a key of a component's place.
func (g *Graph) placedAt(x *Component, key string) Span {
	if n := x.key(key); n != nil {
		return n.val
	}
	if group := g.GroupOfComponent(x.Name); group != nil && group.table.at(key) != nil {
		return group.table.at(key).val
	}
	if plugin := g.Plugin(x.Plugin); plugin != nil && plugin.table.at(key) != nil {
		return plugin.table.at(key).val
	}
	return x.table.key
}

// machine is what this program may use here.
type machine struct {
	cores  place.Cores
	lowest int
	err    error
}

func thisMachine() (m machine) {
	var no error
	m.cores, m.err = place.Available()
	m.lowest, no = place.LowestNice()
	m.err = errors.Join(m.err, no)
	return m
}

// Placed returns which places of the graph this machine does not have, each with the given code.
func (g *Graph) Placed(code string) Problems {
	r := Report{File: g.File}
	here := thisMachine()
	for i := range g.Components {
		x := &g.Components[i]
		here.check(&r, code, "component "+quote(x.Name), g.PlaceOf(x), func(key string) Span { return g.placedAt(x, key) })
	}
	for i := range g.Envs {
		e := &g.Envs[i]
		here.check(&r, code, "env "+quote(e.Name), e.Table.PlaceOf(), e.Place)
	}
	return r.Sorted()
}

// check notes what of a place the machine does not have.
func (m *machine) check(r *Report, code, who string, p place.Place, at func(key string) Span) {
	if p.Cores == "" && p.Nice == 0 {
		return
	}
	if m.err != nil {
		r.Add(code, at("cores"), "leave cores and nice out", "%s cannot be placed: %v", who, m.err)
		return
	}
	if p.Cores != "" {
		cores, _ := place.ParseCores(p.Cores) // it has been checked
		if missing := cores.Without(m.cores); len(missing) > 0 {
			r.Add(code, at("cores"), fmt.Sprintf("this program may use %v; a container, a control group or taskset may allow fewer than there are", m.cores),
				"%s has cores %v, and this program may not use %v", who, cores, missing)
		}
	}
	if p.Nice < m.lowest {
		r.Add(code, at("nice"), fmt.Sprintf("use %d or more, or allow it: `ulimit -e %d`, or the capability CAP_SYS_NICE", m.lowest, 20-p.Nice),
			"%s has nice %d, and this program may set %d at least", who, p.Nice, m.lowest)
	}
}

// Unplaceable returns what of the graph this machine does not have, for a run: as Computable and Placed do.
func (g *Graph) Unplaceable(parts *Parts) Problems {
	return append(g.Computable(parts, CodeDevice), g.Placed(CodePlace)...)
}

// slow warns of event loops with processors of their own that ask a component on another loop at each step: waking a thread takes much
// longer than waking a goroutine.
func (r *placeReader) slow() {
	for i := range r.check.graph.Wires {
		w := &r.check.graph.Wires[i]
		from, to := r.check.graph.Component(w.From), r.check.graph.Component(w.To)
		if component.PayloadOf(w.Payload).AnsweredBy == "" || from.Loop == to.Loop && (w.Paired || from.Count == 1 || from.Loop == trimIndex(from.Loop)) {
			continue
		}
		for _, x := range []*Component{from, to} {
			if x.Runtime == RuntimeProcess || r.check.graph.PlaceOf(x).Cores == "" {
				continue
			}
			r.check.Add(CodeNoGain, r.check.graph.placedAt(x, "cores"), slowHelp(from, to),
				"%q asks %q on another event loop, and %q has a thread of its own there: a question and its answer take some 20 µs", from.Name, to.Name, x.Name)
			break
		}
	}
}

func slowHelp(from, to *Component) string {
	if strings.HasSuffix(from.Loop, indexSuffix) && from.Loop == to.Loop {
		return fmt.Sprintf("put them in a group with a count, which wires them one to one: [group.actors] components = [%q, %q]", from.Name, to.Name)
	}
	return fmt.Sprintf("give both one loop: loop = %q", from.Loop)
}
