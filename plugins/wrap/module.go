package wrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// ModuleTable is a wrapper that is a module: a component that shapes rewards, writes actions or observations, asked about each env step.
type ModuleTable struct {
	Use    string         `toml:"use" doc:"Path of a module that is the wrapper." default:"required"`
	SHA256 string         `toml:"sha256" doc:"SHA-256 that the file must have; empty takes any."`
	Args   map[string]any `toml:"-"` // the module's own table
	Data   string         `toml:"data" doc:"Folder that it may read, as /data; nothing can be written there."`
	Grants []string       `toml:"grants" doc:"Capabilities that it may use." range:"log, metric"`
	Limits env.Limits     `toml:"limits"`
}

// Module is the loaded module of a wrapper; closing it is its loader's business. Its methods may be called concurrently.
type Module interface {
	// Hash returns the SHA-256 of the file.
	Hash() string
	// DataDigest identifies the folder that the module may read: empty without.
	DataDigest() string
	// Columns returns the columns that the module reads.
	Columns() []hostabi.ManifestColumn
	// Writes returns the column that the module writes: trajectory.ShapedReward after each step, trajectory.Action before it, or
	// trajectory.Obs.
	Writes() trajectory.Column
	// New makes an instance for a batch of that many environments and agents of each. columns has one for each of Columns.
	New(o env.Options, agents int, columns []ModuleColumn) (ModuleInstance, error)
}

// ModuleColumn is memory of [Rows][envs][agents][Elems] elements. Rows is 0 for an optional column that there is not.
type ModuleColumn struct {
	DType       hostabi.DType
	Rows, Elems int
	Write       bool // the module's to write
}

// ModuleInstance is one running copy of a module.
type ModuleInstance interface {
	// Column returns the memory of a column, valid until the next Call.
	Column(i int) []byte
	// Call makes the module read and write its columns. After an error these are invalid, and the module is in its first state.
	Call() error
	Close() error
}

// Loader loads the module of a wrapper. The error is a *table.Error, or joins several.
type Loader func(t ModuleTable) (Module, error)

// grants are the capabilities that a wrapper may have.
var grants = []string{"log", "metric"}

var hexSHA = regexp.MustCompile("^[0-9a-fA-F]{64}$")

// readModule returns the wrapper of a table that has the key use.
func readModule(t env.Wrapper) (*moduleWrapper, error) {
	c := &moduleWrapper{}
	err := table.Decode(table.Plain(map[string]any(t)), &c.table, "args")
	bad := func(key, reason, help string) {
		err = errors.Join(err, &table.Error{Code: table.CodeRange, Key: key, Reason: reason, Help: help})
	}
	if c.table.Use == "" {
		bad(env.KeyUse, "is empty", `use = "./mine.wasm"`)
	}
	if sha := c.table.SHA256; sha != "" && !hexSHA.MatchString(sha) {
		bad("sha256", "is not 64 hexadecimal digits", "rlhost inspect FILE prints it")
	}
	for _, g := range c.table.Grants {
		if !slices.Contains(grants, g) {
			bad("grants", fmt.Sprintf("lists %q, want any of %s", g, strings.Join(grants, ", ")), `grants = ["log"]`)
		}
	}
	args, isTable := t["args"].(map[string]any)
	if _, there := t["args"]; there && !isTable {
		bad("args", "is not a table", "args = { scale = 0.1 }")
	}
	c.table.SHA256, c.table.Args = strings.ToLower(c.table.SHA256), args
	return c, err
}

// moduleWrapper has a module shape rewards, or write actions or observations.
type moduleWrapper struct {
	rewards
	table  ModuleTable
	module Module
}

func (c *moduleWrapper) validate(func(key, reason, help string)) {} // readModule has

// load loads the module and checks its columns.
func (c *moduleWrapper) load(load Loader, s *hostabi.EnvSpec) (err error) {
	if load == nil {
		return &table.Error{Code: CodeUnsuited, Key: env.KeyUse, Reason: "is a module, and this program runs none around environments"}
	}
	if c.module, err = load(c.table); err != nil {
		return ofModule(err)
	}
	_, _, err = c.columns(s)
	if err == nil && c.observes() {
		err = c.describeObserved(s)
	}
	if err != nil {
		return &table.Error{Code: CodeUnsuited, Key: env.KeyUse, Reason: "does not suit " + s.Name + ": " + err.Error()}
	}
	return nil
}

func (c *moduleWrapper) observes() bool { return c.module.Writes() == trajectory.Obs }

// ofModule puts errors of loading at the keys of the wrapper's table.
func ofModule(err error) error {
	var errs []error
	for _, e := range table.All(err) {
		at := *e
		switch {
		case e.Code == codeData:
			at.Key = env.KeyData
		case e.Key != "":
			at.Key = "args." + e.Key
		default:
			at.Key = env.KeyUse
		}
		errs = append(errs, &at)
	}
	if len(errs) == 0 {
		return &table.Error{Code: CodeUnsuited, Key: env.KeyUse, Reason: "cannot be loaded: " + err.Error(), Err: err}
	}
	return errors.Join(errs...)
}

// codeData is the code of a folder of data that cannot be granted, whatever is to read it.
const codeData = "E092"

// text identifies the wrapper: its table, with the file's hash instead of its path, and the digest of its data.
func (c *moduleWrapper) text(t env.Wrapper) ([]byte, error) {
	same := maps.Clone(t)
	delete(same, env.KeyUse)
	delete(same, "limits")
	delete(same, "grants")
	same["sha256"] = c.module.Hash()
	if delete(same, env.KeyData); c.module.DataDigest() != "" {
		same[env.KeyData] = c.module.DataDigest()
	}
	return json.Marshal(same)
}

// source is where the elements of a column come from.
type source struct {
	column trajectory.Column // 0 for columns that are not in the block
	name   string
	bytes  int // of an element
	elems  int
	rows   int
	write  bool
	state  int // where it lies in the state of an agent, -1 if it is not of that
}

// Columns that no block has.
const (
	columnState  = "wrapper_state"  // the module's state, which the host keeps, by agent: wrapper_state, wrapper_state/1, …
	columnBegins = "wrapper_begins" // 1 in the first step of an episode
)

// OwnColumn reports whether a wrapper can read a column that the blocks of a pipeline do not have.
func OwnColumn(name string) bool {
	base, _, _ := strings.Cut(name, "/")
	return base == columnState || name == columnBegins
}

// columns returns the columns that the module reads, and how many bytes of state an agent has.
func (c *moduleWrapper) columns(s *hostabi.EnvSpec) (list []source, shapes []ModuleColumn, err error) {
	schema, err := trajectory.NewSchema(*s, trajectory.Shape{Steps: 1, Envs: 1})
	if err != nil {
		return nil, nil, err
	}
	state := 0
	for _, m := range c.module.Columns() {
		x, dtype, err := sourceOf(schema, m, c.module.Writes())
		if err != nil {
			return nil, nil, err
		}
		if x.state >= 0 {
			x.state = state
			state += x.bytes
		}
		list = append(list, x)
		shapes = append(shapes, ModuleColumn{DType: dtype, Rows: x.rows, Elems: x.elems, Write: m.Flags&hostabi.ColumnWrite != 0})
	}
	return list, shapes, nil
}

// sourceOf finds a column that a module looks at: before a step if it writes actions, after it if rewards, and whenever something is
// observed if observations.
func sourceOf(schema *trajectory.Schema, m hostabi.ManifestColumn, writes trajectory.Column) (x source, dtype hostabi.DType, err error) {
	write := m.Flags&hostabi.ColumnWrite != 0
	x, dtype = source{name: m.Name, elems: 1, rows: 1, state: -1, write: write}, m.DType
	shapes := writes == trajectory.ShapedReward
	base, _, _ := strings.Cut(m.Name, "/")
	column, known := trajectory.ParseColumn(m.Name)
	switch {
	case base == columnState && write && dtype != 0:
		x.state = 0
	case base == columnState:
		return x, 0, fmt.Errorf("its column %s must have a type and RL_COLUMN_WRITE", m.Name)
	case m.Name == columnBegins:
		dtype = hostabi.U8
	case write && column.Kind() != writes:
		return x, 0, fmt.Errorf("it writes the column %s; such a wrapper writes %v and %s", m.Name, writes, columnState)
	case shapes && (column == trajectory.ShapedReward || column == trajectory.Reward):
		x.column, dtype = column, hostabi.F32
	case known && sees(schema, column, writes):
		l, _ := schema.Layout(column)
		x.column, x.elems, dtype = column, l.Elems, l.DType
		if l.Flags&trajectory.AtT1 != 0 && shapes {
			x.rows = 2
		}
	case m.Flags&hostabi.ColumnOptional != 0:
		x.rows, dtype = 0, hostabi.U8
	default:
		return x, 0, fmt.Errorf("there is no column %s", m.Name)
	}
	if m.DType != 0 && m.DType != dtype {
		return x, 0, fmt.Errorf("it wants the column %s to be %v, it is %v", m.Name, m.DType, dtype)
	}
	x.bytes = dtype.Bytes()
	return x, dtype, nil
}

// sees reports whether blocks have a column that a wrapper can look at.
func sees(schema *trajectory.Schema, c, writes trajectory.Column) bool {
	l, ok := schema.Layout(c)
	return ok && Sees(writes, c, l.Flags)
}

// Sees reports whether a module around environments can look at a column, by the column that it writes and the flags of this one:
// environments read or write it in each step, and before a step they read it.
func Sees(writes, c trajectory.Column, flags trajectory.Flags) bool {
	switch writes {
	case trajectory.Obs:
		return c.Kind() == trajectory.Obs
	case trajectory.ShapedReward:
		return c == trajectory.ShapedReward || flags&trajectory.Guest != 0 && flags&(trajectory.AtT|trajectory.AtT1) != 0
	}
	return flags&trajectory.Outcome == 0 && flags&trajectory.Guest != 0 && flags&(trajectory.AtT|trajectory.AtT1) != 0
}

// open makes the layer with an instance of the module.
func (c *moduleWrapper) open(w *wrapped) (layer, error) {
	l := &moduleLayer{shape: *shapedBy(w, func(r float32) float32 { return r }), each: w.plugin.spec.Agents(), begins: make([]byte, w.o.Envs*w.plugin.spec.Agents()), use: c.table.Use}
	list, shapes, err := c.columns(&w.plugin.spec)
	if err != nil {
		return nil, err
	}
	l.sources = list
	for i := range list {
		if x := &list[i]; x.state >= 0 {
			l.record += x.bytes
		}
		l.episodes = l.episodes || list[i].name == columnBegins
	}
	l.state = make([]byte, w.o.Envs*l.each*l.record)
	for i := range l.begins {
		l.begins[i] = 1
	}
	if l.instance, err = c.module.New(w.o, l.each, shapes); err != nil {
		return nil, err
	}
	switch c.module.Writes() {
	case trajectory.Action:
		a := &actingLayer{moduleLayer: *l, choice: w.plugin.spec.All(hostabi.RoleAction), idle: make([]byte, w.o.Envs)}
		a.acting = a
		return a, nil
	case trajectory.Obs:
		return &observingLayer{moduleLayer: *l, idle: make([]byte, w.o.Envs), last: make([]byte, w.o.Envs)}, nil
	}
	return l, nil
}
