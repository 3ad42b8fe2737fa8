package graph

import (
	"cmp"
	"errors"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
)

// KindModule is the kind of a module's component whose table gives it no other name.
const KindModule = "module"

func defaultModule() ModuleTable { return ModuleTable{MaxRestarts: 5} }

// Path returns where the module lies.
func (m *Module) Path(dir string) string {
	if filepath.IsAbs(m.Table.Use) {
		return m.Table.Use
	}
	return filepath.Join(dir, m.Table.Use)
}

// lines writes out the keys that differ from the defaults.
func (m *Module) lines() []keyValue {
	all, defaults := encodeStruct(reflect.ValueOf(m.Table)), encodeStruct(reflect.ValueOf(defaultModule()))
	var list []keyValue
	for i, kv := range all {
		if kv != defaults[i] {
			list = append(list, kv)
		}
	}
	return list
}

// moduleReasons lists the differences of two modules.
func moduleReasons(a, b *Module) []string {
	if a == nil || b == nil {
		return nil
	}
	why := lineChanges(a.lines(), b.lines())
	if a.Digest != b.Digest {
		why = append(why, "its module has changed")
	}
	if a.DataDigest != b.DataDigest {
		why = append(why, "its data has changed")
	}
	return why
}

// moduleReader reads the keys of a module.
type moduleReader struct{ check *checker }

// maker is makerOf for a component that is a WebAssembly module. Its kind is only a name.
func (r *moduleReader) maker(n *node, x *Component, kind string) Maker {
	path := "component." + x.Name
	x.Kind = cmp.Or(kind, KindModule)
	if plugin := n.at("plugin"); plugin != nil {
		r.check.Add("E005", plugin.key, "leave it out: `use` names the module", "a component with runtime = %q has no `plugin`", RuntimeWasm)
		return nil
	}
	m := &Module{Table: defaultModule()}
	since := len(r.check.list)
	d := &tableDecoder{report: &r.check.Report, n: n.only(moduleKeys), path: path}
	d.decode(&m.Table) // errors have been noted
	m.Table.SHA256 = strings.ToLower(m.Table.SHA256)
	r.check.checkSHA(n, m.Table.SHA256)
	r.check.atLeast(n, "max_restarts", m.Table.MaxRestarts, 0)
	if limits := n.at("limits"); limits != nil {
		r.check.atLeast(limits, "leases", m.Table.Limits.Leases, 0)
	}
	switch use := n.at("use"); {
	case use == nil:
		r.check.Add("E004", n.key, `name the module: use = "./`+x.Name+`.wasm"`, "`use` is missing in [%s]", path)
	case m.Table.Use == "" && !r.check.failed(since):
		r.check.Add("E005", use.val, "", "`use` is empty")
	}
	if r.check.failed(since) {
		return nil
	}
	if r.check.parts.Module == nil {
		r.problem(n, x, errors.New("this program runs no modules"))
		return nil
	}
	x.Module = m
	m.Digest = fileDigest(m.Path(r.check.graph.Dir))
	source := env.Source{Data: m.Table.Data}
	m.DataDigest = source.DataDigest(r.check.graph.Dir)
	return r.check.parts.Module(m.Table, r.check.graph.Dir)
}

// problem says why a module cannot be used.
func (r *moduleReader) problem(n *node, x *Component, err error) {
	var known *table.Error
	if errors.As(err, &known) && known.Key != "" && n.at(known.Key) != nil { // of another key than use
		r.check.Add(known.Code, n.at(known.Key).val, known.Help, "component %s: %s", quote(x.Name), known.Sentence())
		return
	}
	r.check.sourceProblem(n.at("use").val, "component "+quote(x.Name), n.at("use").Text(), err)
}
