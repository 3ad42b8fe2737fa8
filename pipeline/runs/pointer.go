package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rlhost/rlhost/core/files"
)

// pointer is the content of latest.json, best.json and best.POLICY.json.
type pointer struct {
	Format        int      `json:"format"`
	Rlhost        string   `json:"rlhost"`
	Checkpoint    string   `json:"checkpoint"` // name of its folder
	PolicyVersion uint64   `json:"policy_version"`
	EnvSteps      uint64   `json:"env_steps"`
	MeanReturn    *float64 `json:"mean_return"`
}

const pointerSuffix = ".json"

func pointerPath(root, which string) string { return filepath.Join(root, which+pointerSuffix) }

// bestOf selects the best checkpoint of a policy that does not lead.
func bestOf(policy string) string { return Best + "." + policy }

// BestOf returns the name by which Load reads the best checkpoint of a policy.
func (r *Run) BestOf(policy string) string {
	if leading := r.Info().Policy; policy == "" || leading == "" || policy == leading {
		return Best
	}
	return bestOf(policy)
}

// bests lists the pointers to best checkpoints, the leading policy's first.
func bests(root string) (list []string) {
	entries, _ := os.ReadDir(root) // a folder that cannot be read has none
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), pointerSuffix); ok && isBest(name) {
			list = append(list, name)
		}
	}
	return list
}

// isBest reports whether a word selects the best checkpoint of a policy.
func isBest(which string) bool {
	policy, other := strings.CutPrefix(which, bestOf(""))
	return which == Best || other && policy != "" && !strings.ContainsAny(policy, "./\\")
}

// Lead notes which policy leads from now on. The best checkpoint so far remains that of the policy that led.
func (r *Run) Lead(policy string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	root, before := filepath.Join(r.Dir, checkpointsDir), r.info.Policy
	if err := r.update(func(i *Info) { i.Policy = policy }); err != nil || before == "" || before == policy {
		return err
	}
	err := os.Rename(pointerPath(root, Best), pointerPath(root, bestOf(before)))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.Rename(pointerPath(root, bestOf(policy)), pointerPath(root, Best))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // neither had one
	}
	return err
}

// point makes a pointer name a checkpoint, with that mean return of its policy.
func (r *Run) point(root, which, name string, m *manifest, mean *float64) error {
	b, err := encodeJSON(pointer{Format: Format, Rlhost: m.Rlhost, Checkpoint: name,
		PolicyVersion: m.PolicyVersion, EnvSteps: m.EnvSteps, MeanReturn: mean})
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
