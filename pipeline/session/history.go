package session

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/overrides"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// previous is the version that a component goes back to.
type previous struct {
	version control.Version
	back    []string // overrides that bring it back
	// undo is how all tables of its change were, where policies, components or wires came or went with it: then they go back together.
	undo []runs.Table
	// wrap is the change of a wrapper, where that is undone.
	wrap *runs.Wrap
	// earlier is the previous way back, or nil: if the new version fails, it is restored.
	earlier *previous
}

// wrapperName names a wrapper of a component's environments, as requests do.
func wrapperName(component string, place int) string {
	return fmt.Sprintf("%s.wrap[%d]", component, place)
}

// graph returns the text of a graph with the component as it was, and overrides for it.
func (p *previous) graph(now *graph.Graph) (text string, sets []string) {
	if p.undo == nil {
		return now.Resolved(), overrides.Needed(now, p.back)
	}
	sets = slices.DeleteFunc(overrides.Needed(now, p.back), func(set string) bool { return !strings.HasPrefix(set, changeEnv+".") })
	var sections []graph.Section
	for _, t := range p.undo {
		sections = append(sections, graph.Section(t))
	}
	return now.UndoneText(sections), sets
}

// history records the changes of the run, in memory and in its folder: versions, modules, events, pipeline.toml.
type history struct {
	live       *live
	mu         sync.Mutex
	last       uint64 // number of the last change
	counts     control.SwapCounts
	names      map[string]string    // original names of files, by their hashes
	data       map[string]string    // digests of folders of data as they were loaded, by their paths
	previous   map[string]*previous // by component, or by the name of a wrapper of its environments
	rolledBack map[string]string    // why a component runs its previous version again
	unwritten  bool                 // pipeline.toml of the run's folder is older than the running pipeline

	lastStep   string // of the events
	lastNumber uint64
}

func newHistory(l *live) *history {
	return &history{live: l, names: map[string]string{}, data: map[string]string{}, previous: map[string]*previous{}, rolledBack: map[string]string{}}
}

// recall reads the changes made before this process took the run over.
func (h *history) recall() error {
	list, err := h.live.Run.Changes()
	if err != nil && !errors.Is(err, runs.ErrCorrupt) {
		return err
	}
	if err != nil {
		h.live.log.Warn("what was changed before is known in part", "error", err)
	}
	var made uint64 // the newest change that was
	var known []string
	for i := range list {
		c := &list[i]
		h.last = max(h.last, c.Number)
		for _, v := range []*runs.Version{c.Old, c.New} {
			if v != nil && v.Hash != "" && v.File != "" {
				h.names[v.Hash] = v.File
			}
		}
		if c.Step != h.lastStep || c.Number != h.lastNumber {
			h.count(c.Step)
		}
		h.lastStep, h.lastNumber = c.Step, c.Number
		if !madeBy(c) && !(c.Step == runs.StepBegin && c.After == h.writtenHash()) {
			continue
		}
		if c.Number != made {
			made, known = c.Number, nil
		}
		switch {
		case c.Component == "" || slices.Contains(known, c.Component): // a killed process may leave the line before alone
		case c.What == whatFallback:
			h.forget(c.Component, c.Wraps)
		case c.Old != nil && len(c.Back) > 0:
			h.replace(c.Component, previous{version: control.Version(*c.Old), back: h.here(c.Back), undo: c.Undo}, h.wrapsHere(c.Wraps))
		}
		known = append(known, c.Component)
	}
	return nil
}

// here makes overrides name the modules where they lie now: the run's folder may have been moved.
func (h *history) here(back []string) []string {
	return storedHere(h.live.Run, back)
}

// wrapsHere is here for changes of wrappers.
func (h *history) wrapsHere(list []runs.Wrap) []runs.Wrap {
	list = slices.Clone(list)
	for i := range list {
		texts := h.here([]string{list[i].Old, list[i].New})
		list[i].Old, list[i].New = texts[0], texts[1]
	}
	return list
}

// remember keeps the versions before a change, for a rollback.
func (h *history) remember(parts []part) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range parts {
		if x.component != "" {
			h.replace(x.component, previous{version: x.old, back: x.back, undo: x.undo}, x.wraps)
			delete(h.rolledBack, x.component)
		}
	}
}

// replace sets the version, with its wrappers, that a component goes back to.
func (h *history) replace(component string, p previous, wraps []runs.Wrap) {
	put := func(name string, p previous) {
		if p.earlier = h.previous[name]; p.earlier != nil {
			p.earlier.earlier = nil // one failure is followed by no other of the same version
		}
		h.previous[name] = &p
	}
	put(component, p)
	for _, w := range wraps {
		put(wrapperName(component, w.Place), previous{version: control.Version{File: w.Old}, wrap: &w})
	}
}

// forget restores the way back from before a failed version, as if that had never run.
func (h *history) forget(component string, wraps []runs.Wrap) {
	take := func(name string) {
		if now := h.previous[name]; now != nil && now.earlier != nil {
			h.previous[name] = now.earlier
		} else {
			delete(h.previous, name)
		}
	}
	take(component)
	for _, w := range wraps {
		take(wrapperName(component, w.Place))
	}
}

// before is the version that a component goes back to, or nil.
func (h *history) before(component string) *previous {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.previous[component]
}

// whyRolledBack is why a component runs its previous version again, if it does.
func (h *history) whyRolledBack(component string) (why string, yes bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	why, yes = h.rolledBack[component]
	return why, yes
}

// swaps are the counts of changes.
func (h *history) swaps() control.SwapCounts {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counts
}

// ranAgain keeps why the previous version runs again.
func (h *history) ranAgain(parts []part, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range parts {
		h.rolledBack[x.component] = reason
		h.forget(x.component, x.wraps)
	}
}

// store keeps a module for a change, under its hash, where it is never changed.
func (h *history) store(file string) (runs.Module, error) {
	m, err := h.live.Run.Store(file)
	if err == nil {
		h.mu.Lock()
		h.names[m.Hash] = file
		h.mu.Unlock()
	}
	return m, err
}

// count counts the steps of changes for SwapCounts.
func (h *history) count(step string) {
	switch step {
	case runs.StepCommitted:
		h.counts.Committed++
	case runs.StepRefused:
		h.counts.Refused++
	case runs.StepBack:
		h.counts.RolledBack++
	}
}

// mark makes metrics of changes: a plot has its marks where they rise.
func (h *history) mark() {
	stats := h.live.Pipeline.Stats()
	stats.Gauge("swap/committed").Set(float64(h.counts.Committed))
	stats.Gauge("swap/rolled_back").Set(float64(h.counts.RolledBack))
}

// storeAll stores the modules that the pipeline was built from: whatever happens to their files, a rollback finds them.
func (h *history) storeAll() {
	g := h.live.Pipeline.Graph()
	for i := range g.Envs {
		plugin, err := h.live.Pipeline.Env(g.Envs[i].Name)
		if err != nil {
			continue // nothing runs of it
		}
		if path, ok := h.live.moduleOf(g, &g.Envs[i]); ok {
			h.storeLoaded(path, plugin.Hash())
		}
		h.storeData(g.Envs[i].Table.DataIn(g.Dir))
		there, hashes := g.Envs[i].Table.In(g.Dir), g.Envs[i].Table.WrapHashes(plugin)
		for place, use := range there.WrapModules() {
			h.storeLoaded(use, hashes[place])
		}
		for _, data := range there.WrapData() {
			h.storeData(data)
		}
	}
	for i := range g.Components {
		if x := g.Components[i].Module; x != nil {
			h.storeLoaded(x.Path(g.Dir), x.Digest)
			if x.Table.Data != "" {
				h.storeData(files.In(g.Dir, x.Table.Data))
			}
		}
	}
}

// storeLoaded stores a module that was loaded, and its name unless the file has changed since.
func (h *history) storeLoaded(path, hash string) {
	m, err := h.live.Run.Store(path)
	if err != nil {
		h.live.log.Warn("the run goes on without a copy of a module: a rollback to it may not find it", "module", path, "error", err)
		return
	}
	if _, known := h.names[m.Hash]; !known && m.Hash == hash {
		h.names[m.Hash] = path
	}
}

// storeData stores a folder of data that was loaded; without one it does nothing.
func (h *history) storeData(path string) {
	if path == "" {
		return
	}
	d, err := h.live.Run.StoreData(path)
	if err != nil {
		h.live.log.Warn("the run goes on without a copy of its data: a rollback to it may not find it", "data", path, "error", err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.data[path]; !known {
		h.data[path] = d.Digest
	}
}

// runningData returns where the data of a running environment lies as it was loaded: its own path while nothing has changed there, else the
// stored copy. Both are empty without data.
func (h *history) runningData(e *graph.Env) (path, digest string) {
	path = e.Table.DataIn(h.live.Pipeline.Graph().Dir)
	if path == "" {
		return "", ""
	}
	return h.loadedData(path)
}

// loadedData returns where a folder of data lies as it was loaded from a path outside the pipeline's folder, with its digest.
func (h *history) loadedData(path string) (now, digest string) {
	h.mu.Lock()
	digest, known := h.data[path]
	h.mu.Unlock()
	sum, err := files.FolderSHA256(path)
	if !known || err == nil && sum == digest {
		return path, sum
	}
	if d, err := h.live.Run.StoredData(digest); err == nil {
		path = d.Path
	}
	return path, digest
}

// copyOfData returns the copy of a folder of data as it was loaded; the path itself where there is none.
func (h *history) copyOfData(path string) string {
	_, digest := h.loadedData(path)
	if d, err := h.live.Run.StoredData(digest); err == nil {
		return d.Path
	}
	return path
}

// dataName returns the path from which a folder of data was loaded at first, if a path is that of its copy.
func (h *history) dataName(path, otherwise string) string {
	own, err := filepath.Abs(h.live.Run.DataPath(filepath.Base(path)))
	if err != nil || path != own {
		return otherwise
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, named := range slices.Sorted(maps.Keys(h.data)) {
		if h.data[named] == filepath.Base(path) && named != path {
			return named
		}
	}
	return otherwise
}

// name returns the original name of the file with a hash.
func (h *history) name(hash, otherwise string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if file, ok := h.names[hash]; ok {
		return file
	}
	return otherwise
}

// envVersion is the version of an environment in a graph. hash is that of its loaded plugin, if it is known.
func (h *history) envVersion(g *graph.Graph, env, hash string) control.Version {
	e := g.Env(env)
	if e == nil {
		return control.Version{}
	}
	if path, ok := h.live.moduleOf(g, e); ok {
		return control.Version{File: h.name(hash, path), Hash: hash}
	}
	use := e.Table.Use
	if e.Table.Plugin != nil {
		use = e.Table.Plugin.Name + ":" + use
	}
	return control.Version{File: use, Hash: hash}
}

// runningEnv is the version of an environment that runs.
func (h *history) runningEnv(env string) control.Version {
	hash := ""
	if plugin, err := h.live.Pipeline.Env(env); err == nil {
		hash = plugin.Hash()
	}
	return h.envVersion(h.live.Pipeline.Graph(), env, hash)
}

// version is that of a component: of the environments that it runs, else of itself.
func (h *history) version(g *graph.Graph, name string) control.Version {
	if env := envOf(g, g.Component(name)); env != "" && g == h.live.Pipeline.Graph() {
		return h.runningEnv(env)
	}
	return h.componentVersion(g, name)
}

// write replaces pipeline.toml of the run's folder. A failed write is tried again later.
func (h *history) write(text []byte) error {
	err := h.live.Run.WritePipeline(text)
	h.mu.Lock()
	h.unwritten = err != nil
	h.mu.Unlock()
	if err != nil {
		h.live.log.Error("pipeline.toml of the run is older than what runs; it will be written again", "error", err)
	}
	return err
}

// rewrite repeats a failed write. No change is under way.
func (h *history) rewrite() {
	h.mu.Lock()
	behind := h.unwritten
	h.mu.Unlock()
	if !behind {
		return
	}
	text, err := h.live.Text(h.live.Pipeline.Graph())
	if err != nil {
		return // it worked before: the next change tries again
	}
	if h.live.Run.WritePipeline(text) != nil {
		return
	}
	h.mu.Lock()
	h.unwritten = false
	h.mu.Unlock()
	h.live.log.Info("pipeline.toml of the run says again what runs")
}

// note adds a line to the run's events. A line without an env step gets the run's present one. An error is also
// logged: the run continues without the line.
func (h *history) note(c runs.Change, who asker) error {
	c.UID, c.Command = who.uid, who.command
	if c.EnvStep == 0 {
		c.EnvStep, c.PolicyVersion = h.live.envSteps(), h.live.Pipeline.PolicyVersion()
	}
	err := h.live.Run.Note(c)
	if err != nil {
		h.live.log.Error("the run's events lack a line", "error", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.Step != h.lastStep || c.Number != h.lastNumber { // a change with several components has several lines
		h.count(c.Step)
		h.mark()
	}
	h.lastStep, h.lastNumber = c.Step, c.Number
	return err
}

func (h *history) nextNumber() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	return h.last
}

// writtenHash is that of the one in the run's folder.
func (h *history) writtenHash() string {
	text, err := h.live.Run.Pipeline()
	if err != nil {
		return ""
	}
	return textHash(text)
}

// describe adds new versions, and the last versions of removed policies, to the run's description.
func (h *history) describe(parts []part) error {
	return h.live.Run.Update(func(i *runs.Info) {
		i.Left = h.live.Pipeline.Left()
		for _, p := range parts {
			if p.env == "" || p.new.Hash == "" {
				continue
			}
			if i.Plugins == nil {
				i.Plugins = map[string]string{}
			}
			if use, err := filepath.Rel(h.live.Run.Dir, h.live.Run.ModulePath(p.new.Hash)); err == nil && filepath.IsAbs(p.new.File) {
				i.Plugins[use] = p.new.Hash
				continue
			}
			i.Plugins[p.new.File] = p.new.Hash
		}
	})
}

// componentVersion is the source of a component of a graph, apart from its environments.
func (h *history) componentVersion(g *graph.Graph, name string) control.Version {
	c := g.Component(name)
	switch {
	case c == nil:
		return control.Version{}
	case c.Module != nil:
		return control.Version{File: h.name(c.Module.Digest, c.Module.Path(g.Dir)), Hash: c.Module.Digest}
	case c.Plugin == "":
		return control.Version{File: c.Runtime}
	}
	v := control.Version{File: c.Plugin}
	if p := g.Plugin(c.Plugin); p != nil && p.Table.Path != "" {
		v.File, v.Hash = p.Table.Path, p.Table.SHA256
		if path := programPath(g, p); path != "" {
			if hash, err := files.SHA256(path); err == nil {
				v.Hash = hash
			}
		}
	}
	return v
}
