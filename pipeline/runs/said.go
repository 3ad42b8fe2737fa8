package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/rlhost/rlhost/core/files"
)

// saidFile has the keys of the pipeline file when the run last took it over.
const saidFile = "said.json"

// WriteSaid keeps the pipeline file that the run began with, or has taken over since: each key in full with its value. The
// running pipeline may differ from it, by swaps for instance.
func (r *Run) WriteSaid(keys map[string]string) error {
	text, err := encodeJSON(keys)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lock == nil {
		return errReadOnly
	}
	if err := r.disk.replace(filepath.Join(r.Dir, saidFile), text); err != nil {
		return fmt.Errorf("store what the file of run %s says: %w", r.id, advise(err, r.Dir))
	}
	return nil
}

// Said returns the keys that WriteSaid kept; nil for runs of older versions.
func (r *Run) Said() (keys map[string]string, err error) {
	path := filepath.Join(r.Dir, saidFile)
	text, err := files.Read(path, maxDocument)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &keys)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is %w: %w", path, ErrCorrupt, err)
	}
	return keys, nil
}
