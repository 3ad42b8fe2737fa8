package runs

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/rlhost/rlhost/core/files"
)

// pointer is the content of latest.json and best.json.
type pointer struct {
	Format        int      `json:"format"`
	Rlhost        string   `json:"rlhost"`
	Checkpoint    string   `json:"checkpoint"` // name of its folder
	PolicyVersion uint64   `json:"policy_version"`
	EnvSteps      uint64   `json:"env_steps"`
	MeanReturn    *float64 `json:"mean_return"`
}

func pointerPath(root, which string) string { return filepath.Join(root, which+".json") }

// point makes a pointer name a checkpoint.
func (r *Run) point(root, which, name string, m *manifest) error {
	b, err := encodeJSON(pointer{Format: Format, Rlhost: m.Rlhost, Checkpoint: name,
		PolicyVersion: m.PolicyVersion, EnvSteps: m.EnvSteps, MeanReturn: m.MeanReturn})
	if err != nil {
		return err
	}
	return r.disk.replace(pointerPath(root, which), b)
}

func readPointer(root, which string) (pointer, error) {
	path := pointerPath(root, which)
	b, err := files.Read(path, maxDocument)
	if err != nil {
		return pointer{}, err
	}
	if err := checkFormat(path, b); err != nil {
		return pointer{}, err
	}
	var p pointer
	if err := json.Unmarshal(b, &p); err != nil {
		return pointer{}, fmt.Errorf("%s is %w: %w", path, ErrCorrupt, err)
	}
	if _, _, ok := parseFolder(p.Checkpoint); !ok {
		return pointer{}, fmt.Errorf("%s is %w: it names %q", path, ErrCorrupt, p.Checkpoint)
	}
	return p, nil
}
