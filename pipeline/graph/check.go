package graph

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/table"
)

// assignment is one --set argument.
type assignment struct {
	path  []string
	spans []Span // of the parts of path
	value *node
}

// top is the position of errors about the whole file.
func (k *checker) top() Span { return Span{k.root.key.src, 0, 0} }

// ParseOptions configure Parse.
type ParseOptions struct {
	// Sets are key=value arguments, applied after presets are expanded (arguments of [train] before). Values are TOML; bare words are strings.
	Sets []string
	// Parts are the parts that the pipeline may use; nil is none.
	Parts *Parts
	// Dir is the folder that paths of plugins are relative to. Empty means the folder of the file.
	Dir string
	// Running is the graph of a run that the file will change, nil for a new one. Schedules that the preset takes from
	// the stop rule keep their values there.
	Running *Graph
	// Read returns the content of another file that the pipeline is made of: of at most MaxBytes. Nil reads it from the disk.
	Read func(path string) ([]byte, error)
	// Getenv returns a variable of the environment; nil is os.LookupEnv.
	Getenv func(name string) (value string, set bool)
	// Expanded says that Graph.Expanded wrote the file. Numbers that were derived are then derived again: in a synchronous run
	// datasets have the rows that follow from Sets, unless these say how many.
	Expanded bool
}

// checker is the state of one Parse.
type checker struct {
	Report
	parts    *Parts
	graph    *Graph
	running  *Graph // that the file will change, or nil
	expanded bool   // Graph.Expanded wrote the file
	root     *node
	bad      map[string]bool // sections that could not be read, so that their missing keys are not reported
	broken   map[string]bool // components that could not be read
	unsure   map[string]bool // components whose table is wrong: with the right one they may have other ports
	wireSets []assignment
	choosing choosing
	readAny  func(path string) ([]byte, error)
	getenv   func(name string) (string, bool)
}

func newChecker(file string, o ParseOptions) *checker {
	c := &checker{parts: o.Parts, running: o.Running, expanded: o.Expanded, readAny: o.Read, getenv: o.Getenv,
		bad: map[string]bool{}, broken: map[string]bool{}, unsure: map[string]bool{}}
	c.File = file
	c.graph = &Graph{File: file, Dir: o.Dir}
	if o.Parts == nil {
		c.parts = &Parts{}
	}
	if c.readAny == nil {
		c.readAny = func(path string) ([]byte, error) { return files.Read(path, MaxBytes) }
	}
	if c.getenv == nil {
		c.getenv = os.LookupEnv
	}
	if o.Dir == "" {
		c.graph.Dir = filepath.Dir(file)
	}
	return c
}

// validName reports whether a name can be a part of component.port and of file names.
func validName(s string) bool {
	for i := range len(s) {
		if !isBare(s[i]) || i == 0 && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') {
			return false
		}
	}
	return s != ""
}

// VersionName splits the name of a policy's version, such as main@12.
func VersionName(name string) (policy string, version uint64, ok bool) {
	policy, number, found := strings.Cut(name, "@")
	version, err := strconv.ParseUint(number, 10, 63)
	ok = found && err == nil && version > 0 && validName(policy) && number == strconv.FormatUint(version, 10)
	return policy, version, ok
}

// maxTables bounds the tables of one section.
const maxTables = 1024

// namedTable is one table of a section such as [env.NAME].
type namedTable struct {
	*node
	name string
}

// named returns the tables of a section in their order; it reports bad names and values that are no tables.
func (k *checker) named(section string) []namedTable {
	var list []namedTable
	n := k.root.at(section)
	if n == nil {
		return nil
	}
	for _, name := range n.names {
		child := n.table[name]
		_, _, isVersion := VersionName(name)
		switch {
		case child.kind != tableNode:
			k.wrong(child, section+"."+name, "a table", "write ["+section+".NAME]")
		case !validName(name) && !(section == "policy" && isVersion):
			k.Add("E005", child.key, "use letters, digits, _ and -, with a letter first", "%q cannot be a name", name)
		case len(list) == maxTables:
			k.Add("E005", child.key, "", "there are more than %d tables [%s.NAME]", maxTables, section)
			return list
		default:
			list = append(list, namedTable{child, name})
			continue
		}
		k.broken[section+"."+name] = true
	}
	return list
}

// declared lists the names in a section, also of tables that have errors.
func (k *checker) declared(section string) []string {
	if n := k.root.at(section); n != nil {
		return n.names
	}
	return nil
}

// reference checks that a table names something declared in a section: its key is the section's name.
func (k *checker) reference(from *node, section string) string {
	n := from.at(section)
	name, ok := n.text()
	if !ok || name == "" || k.bad[section] || name == unresolved {
		return name
	}
	names := k.declared(section)
	if slices.Contains(names, name) {
		return name
	}
	help := table.DidYouMean(name, "%q", "declared", names)
	if len(names) == 0 {
		help = "declare it: [" + section + "." + name + "]"
	}
	k.Add("E011", n.val, help, "%s %q is not declared", section, name)
	return name
}

// noPreset suppresses problems about tables that the preset would have added.
func (k *checker) noPreset() { k.bad["component"], k.bad["policy"], k.bad["wire"] = true, true, true }

// sections are the keys of a file, with the shape of each.
var sections = [...]struct {
	name string
	kind nodeKind
	want string
}{
	{"rlhost", scalarNode, "an integer"}, {"run", tableNode, "a table: [run]"},
	{"plugin", tableNode, "tables: [plugin.NAME]"}, {"env", tableNode, "tables: [env.NAME]"}, {"policy", tableNode, "tables: [policy.NAME]"},
	{"train", tableNode, "a table: [train]"}, {"swap", tableNode, "a table: [swap]"}, {"component", tableNode, "tables: [component.NAME]"}, {"group", tableNode, "tables: [group.NAME]"},
	{"wire", arrayNode, "a list of tables: [[wire]]"}, {"sweep", tableNode, "a table: [sweep]"}, {"cluster", tableNode, "a table: [cluster]"},
}

// sectionNames lists the keys of a file.
func sectionNames() (names []string) {
	for _, s := range sections {
		names = append(names, s.name)
	}
	return names
}

// allTables reports whether an array holds only tables.
func allTables(n *node) bool {
	return !slices.ContainsFunc(n.items, func(item *node) bool { return item.kind != tableNode })
}

// configErrors notes each of the errors that err joins, except what may follow from faults that have been noted.
func (k *checker) configErrors(table *node, path string, known *faults, err error) {
	if err == nil {
		return
	}
	var e *component.ConfigError
	joined, many := err.(interface{ Unwrap() []error })
	switch {
	case many:
		for _, one := range joined.Unwrap() {
			k.configErrors(table, path, known, one)
		}
	case errors.As(err, &e) && known.explain(e):
	case errors.As(err, &e) && e.Key != "":
		k.configError(table, path, e)
	case errors.As(err, &e) && e.Code != "":
		k.Add(e.Code, table.key, e.Help, "[%s]: %s", path, e.Sentence())
	case !errors.Is(err, errDecode):
		k.Add("E005", table.key, "", "[%s]: %v", path, err)
	}
}

// configError reports an error of a component or a policy in its table.
func (k *checker) configError(table *node, path string, e *component.ConfigError) {
	at, code := table.key, codeOf(e)
	if n := lookup(table, e.Key); n != nil {
		at = k.blame(table, n, e)
		if code == "E002" || code == "E010" && strings.Contains(path, ".wrap[") { // the name itself is wrong
			at = n.key
		}
	}
	key := e.Key
	if !strings.HasPrefix(e.Reason, "=") {
		key = "`" + e.Key + "`"
	}
	where := ""
	if at == table.key {
		where = " in [" + path + "]"
	}
	k.Add(code, at, e.Help, "%s %s%s", key, e.Reason, where)
}

// codeOf returns the code of a component's error. The number of environments has its own codes.
func codeOf(e *component.ConfigError) string {
	switch {
	case e.Code != "":
		return e.Code
	case strings.Contains(e.Reason, "missing"):
		return "E004"
	case e.Key == "envs" && strings.Contains(e.Reason, "divisible"):
		return "E020"
	case e.Key == "envs":
		return "E021"
	}
	return "E005"
}

// blame returns the place to show for a key. If the key comes from a preset and the reason names another key
// that the user wrote, it is that key's.
func (k *checker) blame(table, n *node, e *component.ConfigError) Span {
	if n.val.order() < firstPreset {
		return n.val
	}
	for _, word := range wordsOf(e.Reason) {
		if other := table.at(word); other != nil && other.val.order() < firstPreset {
			return other.val
		}
	}
	return n.val
}

// atLeast checks an integer of a table, if it was given as one.
func (k *checker) atLeast(table *node, key string, value, least int) {
	n := lookup(table, key)
	if n == nil || value >= least {
		return
	}
	if _, ok := n.value.(int64); ok {
		k.Add("E005", n.val, "", "`%s` is %d, must be %d or more", key, value, least)
	}
}

// atMost is the same for the other end.
func (k *checker) atMost(table *node, key string, value, most int) {
	n := lookup(table, key)
	if n == nil || value <= most {
		return
	}
	if _, ok := n.value.(int64); ok {
		k.Add("E005", n.val, "", "`%s` is %d, must be %d or less", key, value, most)
	}
}

// Placeholders in presets for values of the file.
const (
	unresolved  = "$env"       // the environment that [train] names
	runEnvSteps = "$env_steps" // stop.env_steps of [run], 0 without it
)

// formatVersion is the version of the file format, the value of the key rlhost.
const formatVersion = 1

func unique(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
