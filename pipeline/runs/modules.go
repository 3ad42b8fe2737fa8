package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rlhost/rlhost/core/files"
)

// modulesDir has the modules that the run has used, by their hash.
const modulesDir = "plugins"

// moduleSuffix ends the name of a stored module.
const moduleSuffix = ".wasm"

// maxModule bounds the file of a module. The wasm runtime has its own, lower bound.
const maxModule = 1 << 30

// Module is a module stored in the run's folder.
type Module struct {
	Path string // of the copy; absolute
	Hash string // SHA-256, hexadecimal
	New  bool   // it was not stored before
}

// Store copies a module into the run's folder, as plugins/HASH.wasm, where it does not change. An existing file
// stays.
func (r *Run) Store(path string) (Module, error) {
	data, err := files.Read(path, maxModule)
	if err != nil {
		return Module{}, err
	}
	m := Module{Hash: hexHash(data)}
	if m.Path, err = filepath.Abs(r.ModulePath(m.Hash)); err != nil {
		return Module{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lock == nil {
		return Module{}, errReadOnly
	}
	if there, err := files.Read(m.Path, maxModule); err == nil && hexHash(there) == m.Hash {
		return m, nil
	}
	m.New = true
	if err := r.keepModule(m.Path, data); err != nil {
		return Module{}, fmt.Errorf("store %s in run %s: %w", path, r.id, advise(err, r.Dir))
	}
	return m, nil
}

func (r *Run) keepModule(path string, data []byte) error {
	dir := filepath.Dir(path)
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		err = r.disk.sync(r.Dir)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return r.disk.replace(path, data)
}

// Unstore removes a module that Store said is new and that nothing has used.
func (r *Run) Unstore(m Module) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !m.New {
		return nil
	}
	return os.Remove(m.Path)
}

// ModulePath returns where a module of that hash lies if it is stored.
func (r *Run) ModulePath(hash string) string {
	return filepath.Join(r.Dir, modulesDir, hash+moduleSuffix)
}

// Stored returns a stored module after checking its content: ErrCorrupt if that has changed, fs.ErrNotExist
// if it was not stored.
func (r *Run) Stored(hash string) (Module, error) {
	path, err := filepath.Abs(r.ModulePath(hash))
	if err != nil {
		return Module{}, err
	}
	data, err := files.Read(path, maxModule)
	if err != nil {
		return Module{}, err
	}
	if got := hexHash(data); got != hash {
		return Module{}, fmt.Errorf("%s is %w: its SHA-256 is %s; put the module with that hash in its place", path, ErrCorrupt, got)
	}
	return Module{Path: path, Hash: hash}, nil
}
