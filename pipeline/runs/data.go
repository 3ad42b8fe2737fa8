package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rlhost/rlhost/core/files"
)

// Data is a folder of data that is stored in the run's folder.
type Data struct {
	Path   string // of the copy; absolute
	Digest string // see files.Folder
}

// StoreData copies a folder of data into the run's folder, as plugins/DIGEST, where it does not change. An existing copy stays.
func (r *Run) StoreData(path string) (Data, error) {
	folder, err := files.ReadFolder(path)
	if err != nil {
		return Data{}, err
	}
	d := Data{Digest: folder.Digest}
	if d.Path, err = filepath.Abs(r.DataPath(d.Digest)); err != nil {
		return Data{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lock == nil {
		return Data{}, errReadOnly
	}
	if sum, err := files.FolderSHA256(d.Path); err == nil && sum == d.Digest {
		return d, nil
	}
	if err := r.keepData(d.Path, folder); err != nil {
		return Data{}, fmt.Errorf("store %s in run %s: %w", path, r.id, advise(err, r.Dir))
	}
	return d, nil
}

// keepData writes a folder beside its place and moves it there, so that a crash leaves no part of one.
func (r *Run) keepData(path string, folder *files.Folder) error {
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	temp := filepath.Join(filepath.Dir(path), tempPrefix+filepath.Base(path))
	err := errors.Join(os.RemoveAll(temp), os.RemoveAll(path))
	if err == nil {
		err = folder.Write(temp)
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	return r.disk.sync(filepath.Dir(path))
}

// DataPath returns where a folder of data with that digest lies if it is stored.
func (r *Run) DataPath(digest string) string { return filepath.Join(r.Dir, modulesDir, digest) }

// StoredData returns a stored folder of data after checking its content: ErrCorrupt if that has changed, fs.ErrNotExist if it was not
// stored.
func (r *Run) StoredData(digest string) (Data, error) {
	path, err := filepath.Abs(r.DataPath(digest))
	if err != nil {
		return Data{}, err
	}
	got, err := files.FolderSHA256(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Data{}, err
	case err != nil:
		return Data{}, fmt.Errorf("%s is %w: %w; put the folder with that digest in its place", path, ErrCorrupt, err)
	case got != digest:
		return Data{}, fmt.Errorf("%s is %w: its digest is %s; put the folder with that digest in its place", path, ErrCorrupt, got)
	}
	return Data{path, digest}, nil
}
