package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/tape"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/loading"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// CodeModule is the code of errors about an environment that a run has played and that is not there any more.
const CodeModule = "E163"

// Loader returns what loads the environments of a run: modules and data from its own folder.
func Loader(ctx context.Context, run *runs.Run, parts *graph.Parts) Load {
	return func(t *tape.Track) (env.Plugin, error) {
		var d loading.Described
		if err := json.Unmarshal(t.Loaded, &d); err != nil {
			return nil, fmt.Errorf("%w: what the environment was loaded from: %w", tape.ErrFormat, err)
		}
		e := d.Table
		if e.Plugin != nil {
			e.Workers = d.Workers
		}
		if use, relative := e.Locate(d.Dir, parts.Builtins); relative || e.Plugin == nil && filepath.IsAbs(use) {
			stored, err := moduleOf(run, e.Use, use, t.Hash)
			if err != nil {
				return nil, err
			}
			e.Use = stored
		}
		var missing error
		e.Wrap = e.WrapUsing(func(place int, use string) string {
			stored, err := moduleOf(run, use, files.In(d.Dir, use), d.Wraps[place])
			missing = errors.Join(missing, err)
			return stored
		})
		if d.Data != "" {
			stored, err := dataOf(run, e.Data, e.DataIn(d.Dir), d.Data)
			e.Data, missing = stored, errors.Join(missing, err)
		}
		e.Wrap = e.WrapReading(func(place int, data string) string {
			digest := d.WrapData[place]
			if digest == "" {
				return data
			}
			stored, err := dataOf(run, data, files.In(d.Dir, data), digest)
			missing = errors.Join(missing, err)
			return stored
		})
		if missing != nil {
			return nil, missing
		}
		plugin, err := parts.Load(ctx, d.Name, e, d.Dir)
		if err != nil {
			return nil, err
		}
		if got := plugin.Hash(); got != t.Hash {
			return nil, errors.Join(gone(e.Use, t.Hash, fmt.Sprintf("now it has %.8s", got)), plugin.Close())
		}
		return plugin, nil
	}
}

// moduleOf returns the path of a module with that hash: the copy in the run's folder, or the file that the run began with.
func moduleOf(run *runs.Run, use, path, hash string) (string, error) {
	m, err := run.Stored(hash)
	if err == nil {
		return m.Path, nil
	}
	if got, err := files.SHA256(path); err == nil && got == hash {
		return path, nil
	}
	why := "the run's folder has no copy of it, and the file has changed or gone"
	if !errors.Is(err, fs.ErrNotExist) {
		why = err.Error()
	}
	return "", gone(use, hash, why)
}

// dataOf returns the path of a folder of data with that digest: the copy in the run's folder, or the folder that the run began with.
func dataOf(run *runs.Run, data, path, digest string) (string, error) {
	d, err := run.StoredData(digest)
	if err == nil {
		return d.Path, nil
	}
	if got, err := files.FolderSHA256(path); err == nil && got == digest {
		return path, nil
	}
	why := "the run's folder has no copy of it, and the folder has changed or gone"
	if !errors.Is(err, fs.ErrNotExist) {
		why = err.Error()
	}
	return "", &table.Error{Code: CodeModule, Place: data, Reason: fmt.Sprintf("the episode was played with the data with the digest %s, which is not there: %s", digest, why),
		Help: "put the folder with that digest into plugins/ of the run's folder, named by the digest, or at its former place"}
}

func gone(use, hash, why string) error {
	return &table.Error{Code: CodeModule, Place: use, Reason: fmt.Sprintf("the episode was played in the version with SHA-256 %s, which is not there: %s", hash, why),
		Help: "put the module with that SHA-256 into plugins/ of the run's folder, or at its former place"}
}
