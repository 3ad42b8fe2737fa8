package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/pipeline/export"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/page"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// HTML is the format of Page, which has an environment and several versions of a policy.
const HTML export.Format = "html"

// CodePage is the code of an environment that a page cannot play; rlhost explain has its page.
const CodePage = "E101"

// Page returns a page in which a policy of the run plays its environment: as the checkpoint has it, and at most so many versions in all, with
// others that the run has kept. Each is compared with the host as Export does; the result tells of the checkpoint's. name is as for Export.
func Page(ctx context.Context, run *runs.Run, c *runs.Checkpoint, parts *graph.Parts, name string, versions int) (x Exported, err error) {
	e, err := newExporter(ctx, run, parts, name, HTML)
	if err != nil {
		return x, err
	}
	defer func() { err = errors.Join(err, e.plugin.Close()) }()
	content, err := e.content()
	if err != nil {
		return x, err
	}
	for _, version := range spread(run.Checkpoints(), c.PolicyVersion, versions) {
		chosen, of := version == c.PolicyVersion, *c
		if !chosen {
			of, err = run.Load(strconv.FormatUint(version, 10))
		}
		if errors.Is(err, runs.ErrNotFound) { // the run is under way, and has saved newer ones
			continue
		}
		if err != nil {
			return x, err
		}
		v, err := e.encode(&of, export.Wasm)
		if err != nil {
			return x, err
		}
		if chosen {
			x, content.First = v, len(content.Versions)
		}
		content.Versions = append(content.Versions, page.Version{Version: v.Version, EnvSteps: v.EnvSteps, Module: v.File})
	}
	x.File, err = page.Make(content)
	return x, err
}

// content is the page's environment. The error says why a page cannot play it.
func (e *exporter) content() (*page.Content, error) {
	t := &e.graph.Env(e.policy.Env).Table
	if err := pageable(t); err != nil {
		return nil, BuildError(err)
	}
	module, err := e.parts.File(*t, e.graph.Dir)
	if err != nil {
		return nil, err
	}
	spec := e.plugin.Spec()
	keys, err := env.ParseKeys(t.Keys, &spec, e.player.Group)
	if err != nil {
		return nil, BuildError(err)
	}
	if len(keys) == 0 {
		keys = env.OwnKeys(&spec, e.player.Group)
	}
	return &page.Content{Title: spec.Name, About: fmt.Sprintf("Policy %s of run %s, without a server: environment and policy are WebAssembly in this file.", e.policy.Name, e.run.ID()),
		Module: module, Args: t.Args, Grants: t.Grants, Group: e.player.Group, Keys: keys, Seed: 1}, nil
}

// pageable returns an error that says why a page cannot play an environment.
func pageable(t *graph.EnvTable) error {
	reason, help := "", ""
	switch {
	case t.Plugin != nil:
		reason = fmt.Sprintf("it runs in the native plugin %q, and a browser runs WebAssembly modules", t.Plugin.Name)
		help = "write the environment as a module"
	case len(t.Wrap) > 0:
		reason, help = "the policy plays it through wrappers, which a page does not have", "train without `wrap`"
	case t.Data != "":
		reason, help = "it reads the files of a folder, which a page does not have", "put the data into the module"
	default:
		return nil
	}
	return &table.Error{Code: CodePage, Reason: fmt.Sprintf("environment %q cannot be played on a page: %s", t.Name, reason),
		Help: "nothing has been written: " + help + ", or take another format than html"}
}

// spread returns the policy versions of at most n checkpoints, evenly taken from a run's, the chosen one among them.
func spread(saved []runs.Saved, chosen uint64, n int) (versions []uint64) {
	for _, s := range saved {
		versions = append(versions, s.PolicyVersion)
	}
	if !slices.Contains(versions, chosen) {
		versions = append(versions, chosen)
	}
	slices.Sort(versions)
	all := slices.Compact(slices.Clone(versions))
	if n = max(n, 1); len(all) <= n {
		return all
	}
	at, nearest := slices.Index(all, chosen), 0
	taken := make([]int, n)
	for i := range taken {
		taken[i] = i * (len(all) - 1) / max(n-1, 1)
		if distance(taken[i], at) <= distance(taken[nearest], at) {
			nearest = i
		}
	}
	taken[nearest] = at
	slices.Sort(taken)
	versions = versions[:0]
	for _, i := range taken {
		versions = append(versions, all[i])
	}
	return versions
}

func distance(a, b int) int { return max(a-b, b-a) }
