package session

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// keysOf returns a graph's keys, so that they can be compared with other texts': modules by their hashes instead of their
// paths, programs by absolute ones.
func (h *history) keysOf(g *graph.Graph) map[string]string {
	keys := g.Keys()
	for key := range keys {
		if strings.HasSuffix(key, ".sha256") {
			delete(keys, key)
		}
	}
	for i := range g.Envs {
		e := &g.Envs[i]
		if path, ok := h.live.moduleOf(g, e); ok {
			keys[changeEnv+"."+e.Name+".use"] = h.runningHash(e.Name, path)
		}
		if path := e.Table.DataIn(g.Dir); path != "" {
			keys[changeEnv+"."+e.Name+".data"] = h.dataDigest(e, path, g.Dir)
		}
		if len(e.Table.Wrap) > 0 {
			there := e.Table.In(g.Dir)
			there.Wrap = there.WrapUsing(func(_ int, use string) string { return h.runningHash(e.Name, use) })
			keys[changeEnv+"."+e.Name+".wrap"] = env.WrapText(there.WrapReading(func(_ int, data string) string { return h.runningDigest(e.Name, data) }))
		}
	}
	for i := range g.Components {
		if m := g.Components[i].Module; m != nil {
			keys[changeComponent+"."+g.Components[i].Name+".use"] = m.Digest
		}
	}
	for _, p := range g.Plugins {
		path := programPath(g, p)
		if path == "" {
			continue
		}
		if absolute, err := filepath.Abs(path); err == nil { // a run begins in a folder that its graph calls "."
			path = absolute
		}
		keys["plugin."+p.Table.Name+".path"] = path
	}
	return keys
}

// dataDigest is the digest of an environment's folder of data: of the loaded one if the running environments have that path, else of the
// folder as it is now.
func (h *history) dataDigest(e *graph.Env, path, dir string) string {
	g := h.live.Pipeline.Graph()
	if now := g.Env(e.Name); now != nil && now.Table.DataIn(g.Dir) == path {
		_, digest := h.runningData(now)
		return digest
	}
	return e.Table.DataDigest(dir)
}

// runningHash is the SHA-256 of a module: of the loaded one if the running environments, or their wrappers, come from that
// path, whatever the file is now; else of the file; if that cannot be read, it is the path.
func (h *history) runningHash(name, path string) string {
	g := h.live.Pipeline.Graph()
	if e := g.Env(name); e != nil {
		if now, ok := h.live.moduleOf(g, e); ok && now == path {
			if plugin, err := h.live.Pipeline.Env(name); err == nil {
				return plugin.Hash()
			}
		}
		there, hashes := e.Table.In(g.Dir), h.runningWrap(e)
		for place, use := range there.WrapModules() {
			if use == path {
				return hashes[place]
			}
		}
	}
	if sum, err := files.SHA256(path); err == nil {
		return sum
	}
	return path
}

// runningDigest is the digest of a folder of data: as it was loaded if the wrappers of the running environments have it, else as it is.
func (h *history) runningDigest(name, path string) string {
	g := h.live.Pipeline.Graph()
	if e := g.Env(name); e != nil {
		there := e.Table.In(g.Dir)
		for _, data := range there.WrapData() {
			if data == path {
				_, digest := h.loadedData(path)
				return digest
			}
		}
	}
	sum, _ := files.FolderSHA256(path)
	return sum
}

// undone is what a reload undoes: changes since the file was last taken over, in keys that the file has not changed.
type undone struct {
	keys    []string // sorted
	changed []string // keys in which the file differs from its last version and from the running pipeline
	now, to map[string]string
	lines   []string // descriptions of keys
}

// undoneBy finds the changes that a reload to a graph undoes. A run that does not know its file's earlier keys has none.
func (h *history) undoneBy(next *graph.Graph) (u undone, err error) {
	said, err := h.live.Run.Said()
	if err != nil || said == nil {
		return u, err
	}
	u.now, u.to = h.keysOf(h.live.Pipeline.Graph()), h.keysOf(next)
	all := maps.Clone(u.now)
	maps.Copy(all, u.to)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		was, known := said[key]
		is, there := u.to[key]
		now, runs := u.now[key]
		switch {
		case is == now && there == runs:
		case is == was && there == known:
			u.keys = append(u.keys, key)
		default:
			u.changed = append(u.changed, key)
		}
	}
	u.lines = h.describeUndone(&u)
	return u, nil
}

// mark marks the differences that come from the undone changes alone.
func (u *undone) mark(list []control.Change) {
	within := func(keys []string, c *control.Change) bool {
		table := c.What + " " + c.Name + "."
		switch c.What {
		case "run":
			table = "run."
		case changeEnv, "limit":
			table = changeEnv + "." + c.Name + "."
		case changeComponent, "scale":
			table = changeComponent + "." + componentOf(c.Name) + "."
		}
		return slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(key, table) })
	}
	for i := range list {
		list[i].Undoes = within(u.keys, &list[i]) && !within(u.changed, &list[i])
	}
}

// versionKeys are the keys of a version's source.
var versionKeys = map[string][]string{
	changeEnv:       {"use", "wrap", "plugin", "data"},
	changeComponent: append([]string{"runtime"}, graph.SourceKeys...),
	"plugin":        {"path"},
}

// isVersion reports whether a key is about a version's source.
func isVersion(key string) bool {
	section, rest, _ := strings.Cut(key, ".")
	at := strings.LastIndexByte(rest, '.')
	return at >= 0 && slices.Contains(versionKeys[section], rest[at+1:])
}

// describeUndone describes the undone changes, a line for each key.
func (h *history) describeUndone(u *undone) (lines []string) {
	list, _ := h.live.Run.Changes() // an unreadable change has no author
	for _, key := range u.keys {
		line := fmt.Sprintf("%s: %s → %s", key, h.valueText(u.now, key), h.valueText(u.to, key))
		if c := lastOf(list, h.live.Pipeline.Graph(), key); c != nil {
			line += fmt.Sprintf(" (%s, change %d, %s ago, by uid %d)", c.What, c.Number, time.Since(c.Time).Round(time.Second), c.UID)
		}
		lines = append(lines, line)
	}
	return lines
}

// valueText shows the value of a key: a module by its file's name.
func (h *history) valueText(keys map[string]string, key string) string {
	value, ok := keys[key]
	switch {
	case !ok:
		return "none"
	case len(value) == 64 && strings.HasSuffix(key, ".use"):
		return fmt.Sprintf("%s (%.8s)", filepath.Base(h.name(value, value)), value)
	}
	return value
}

// lastOf returns the newest change of a key's subject, or nil.
func lastOf(list []runs.Change, g *graph.Graph, key string) *runs.Change {
	section, rest, _ := strings.Cut(key, ".")
	name, _, _ := strings.Cut(rest, ".")
	components := []string{name}
	if section == changeEnv {
		components = runnersOf(g, name)
	}
	for i := len(list) - 1; i >= 0; i-- {
		c := &list[i]
		about := slices.Contains(components, c.Component) || slices.ContainsFunc(c.Differences, func(text string) bool {
			what, of, _ := strings.Cut(text, " ")
			of, _, _ = strings.Cut(of, ":")
			return strings.HasPrefix(key, what+" "+of) || componentOf(of) == name
		})
		if madeBy(c) && about {
			return c
		}
	}
	return nil
}

// mayUndo refuses a reload that would take back a version, unless that is asked for.
func (ch *change) mayUndo(u *undone) error {
	if ch.undo || ch.rules.dryRun || !slices.ContainsFunc(u.keys, isVersion) {
		return nil
	}
	only := *u
	only.keys = slices.DeleteFunc(slices.Clone(u.keys), func(key string) bool { return !isVersion(key) })
	e := control.Errorf(control.CodeUndoes, "%s would take back what was changed since it was last read: %s",
		filepath.Base(ch.file), strings.Join(ch.job.history.describeUndone(&only), "; "))
	e.Help = "write the version that runs into the file (rlhost swap --write does), or take it back: rlhost reload --undo"
	return e
}

// saidNow keeps the file's keys, once the run has taken them over.
func (h *history) saidNow(g *graph.Graph) error {
	err := h.live.Run.WriteSaid(h.keysOf(g))
	if err != nil {
		err = fmt.Errorf("the next reload cannot tell what it takes back: %w", err)
	}
	return err
}

// readFile notes that the run agrees with its file.
func (ch *change) readFile() error {
	return errors.Join(ch.job.history.saidNow(ch.next), ch.job.Run.Update(func(i *runs.Info) { i.File, i.Sets = ch.file, ch.sets }))
}

// saidAtFirst keeps the keys of the file that the run begins with.
func (h *history) saidAtFirst() {
	if said, err := h.live.Run.Said(); said != nil || err != nil && !errors.Is(err, runs.ErrCorrupt) {
		return
	}
	if err := h.saidNow(h.live.Pipeline.Graph()); err != nil {
		h.live.log.Warn("the run goes on", "error", err)
	}
}
