package member

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Bounds of what goes to other hosts, in bytes.
const (
	maxModule = 256 << 20
	maxPieces = 1 << 30 // all modules and folders of a run together
)

// CodeFiles is the code of a pipeline with files that do not go to other hosts; rlhost explain has its page.
const CodeFiles control.Code = "E140"

// pieces are what the files of a run are for its hosts.
type pieces struct {
	list     []piece
	contents map[string][]byte // what is sent, by digest
	size     int
}

// readPieces reads the modules and the folders of data of a graph. What hosts cannot get is an error.
func readPieces(g *graph.Graph, builtins []string) (*pieces, error) {
	all := &pieces{contents: map[string][]byte{}}
	for i := range g.Envs {
		if err := all.env(g, &g.Envs[i], builtins); err != nil {
			return nil, err
		}
	}
	for i := range g.Components {
		if err := all.component(g, &g.Components[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (a *pieces) env(g *graph.Graph, e *graph.Env, builtins []string) error {
	t, key := &e.Table, "env."+e.Name
	if t.Plugin == nil && !slices.Contains(builtins, t.Use) {
		use, _ := t.Locate(g.Dir, builtins)
		if err := a.module(key+".use", use); err != nil {
			return err
		}
	}
	there := t.In(g.Dir)
	for place, use := range there.WrapModules() {
		if err := a.module(fmt.Sprintf("%s.wrap[%d].use", key, place), use); err != nil {
			return err
		}
	}
	for place, data := range there.WrapData() {
		if err := a.folder(fmt.Sprintf("%s.wrap[%d].data", key, place), data); err != nil {
			return err
		}
	}
	return a.folder(key+".data", there.Data)
}

func (a *pieces) component(g *graph.Graph, x *graph.Component) error {
	key := "component." + x.Name
	if x.Module == nil {
		return nil
	}
	data := ""
	if x.Module.Table.Data != "" {
		data = files.In(g.Dir, x.Module.Table.Data)
	}
	return errors.Join(a.module(key+".use", x.Module.Path(g.Dir)), a.folder(key+".data", data))
}

// module adds a file.
func (a *pieces) module(key, path string) error {
	content, err := files.Read(path, maxModule)
	if err != nil {
		return notSent(key, err)
	}
	return a.add(piece{Key: key, SHA256: digest(content), Size: len(content)}, content)
}

// folder adds a folder of data, where there is one.
func (a *pieces) folder(key, path string) error {
	if path == "" {
		return nil
	}
	f, err := files.ReadFolder(path)
	if err != nil {
		return notSent(key, err)
	}
	content := f.Archive()
	return a.add(piece{Key: key, SHA256: f.Digest, Size: len(content), Folder: true}, content)
}

func (a *pieces) add(x piece, content []byte) error {
	if _, known := a.contents[x.SHA256]; !known {
		a.size += x.Size
	}
	if a.size > maxPieces {
		return notSent(x.Key, fmt.Errorf("with it the modules and data of this run have more than %d MiB", maxPieces>>20))
	}
	a.list, a.contents[x.SHA256] = append(a.list, x), content
	return nil
}

// notSent is the error of a file that cannot go to other hosts.
func notSent(key string, err error) error {
	e := control.Errorf(CodeFiles, "%s does not go to other hosts: %v", key, err)
	e.Help = fmt.Sprintf("a module may have %d MiB, a folder of data %d MiB and no links, all together %d MiB", maxModule>>20, files.MaxFolderBytes>>20, maxPieces>>20)
	return e
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// answer answers with a part of a module or of a folder's archive.
func (a *pieces) answer(data []byte) []byte {
	var q pieceRequest
	if err := json.Unmarshal(data, &q); err != nil {
		return nil
	}
	content, ok := a.contents[q.SHA256]
	if !ok || q.Part < 0 || q.Part > len(content)/partBytes {
		return nil
	}
	first := q.Part * partBytes
	return content[first:min(first+partBytes, len(content))]
}

// getter gets files of a run for this host.
type getter struct {
	ctx   context.Context // of the part of the run that needs them
	cache *Cache
	ask   func(ctx context.Context, q pieceRequest) ([]byte, error) // the run
	held  []*os.File                                                // claims on this host's copies
}

// all gets what this host lacks of a run's files, and returns where its own copies are, by the keys of the pipeline. They stay until letGo.
func (g *getter) all(list []piece) (paths map[string]string, err error) {
	paths = map[string]string{}
	for i := range list {
		x := &list[i]
		if sum, err := hex.DecodeString(x.SHA256); err != nil || len(sum) != sha256.Size || hex.EncodeToString(sum) != x.SHA256 || x.Size < 0 || x.Size > x.most() {
			return nil, fmt.Errorf("the run names %.80q of %d bytes with the digest %.80q", x.Key, x.Size, x.SHA256)
		}
		held, err := g.piece(x)
		if err != nil {
			return nil, err
		}
		g.held = append(g.held, held)
		paths[x.Key] = g.cache.path(x)
	}
	return paths, nil
}

// letGo ends the claims on files.
func (g *getter) letGo() {
	for _, f := range g.held {
		_ = f.Close() // it was opened to lock it
	}
}

func (x *piece) most() int {
	if x.Folder {
		return files.MaxArchive
	}
	return maxModule
}

// piece returns the claim on this host's copy, which it gets where there is none.
func (g *getter) piece(x *piece) (held *os.File, err error) {
	for range 3 { // another process may remove it at once, to make room
		if held, err = g.cache.take(x); held != nil || err != nil {
			return held, err
		}
		if err := g.get(x); err != nil {
			return nil, err
		}
	}
	return nil, noRoom(x, g.cache.Dir, errors.New("it is there, and cannot be locked or read"))
}

// get gets a file part by part, as often as it must until the part of the run ends. What an earlier attempt has got is not asked for again.
func (g *getter) get(x *piece) error {
	for {
		f, err := g.cache.begin(x)
		if err != nil {
			return err
		}
		resumed := f.size > 0
		if err = g.fill(f, x); err == nil {
			err = g.cache.keep(f, x)
		}
		err = errors.Join(err, f.end(err))
		if resumed && isCode(err, CodeDigest) {
			continue // what was there may be bad
		}
		return err
	}
}

// fill asks for the parts that a file lacks.
func (g *getter) fill(f *partial, x *piece) error {
	for f.size < x.Size {
		ctx, stop := context.WithTimeout(g.ctx, leaseTime)
		more, err := g.ask(ctx, pieceRequest{x.SHA256, f.size / partBytes})
		stop()
		switch {
		case g.ctx.Err() != nil:
			return context.Cause(g.ctx)
		case err != nil:
			select {
			case <-g.ctx.Done():
			case <-time.After(renewEvery / 4):
			}
		case len(more) != min(partBytes, x.Size-f.size):
			return differs(x, "the run sends another number of bytes than it has named")
		default:
			if err := f.add(more); err != nil {
				return noRoom(x, f.cache.Dir, err)
			}
		}
	}
	return nil
}

// setsOf returns the arguments that give a graph other paths.
func setsOf(paths map[string]string) (sets []string) {
	for _, key := range slices.Sorted(maps.Keys(paths)) {
		sets = append(sets, fmt.Sprintf("%s=%q", key, paths[key]))
	}
	return sets
}
