package runs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/files"
)

// attempts bounds how often Load follows a pointer that moves on while it reads: a training process may remove a
// checkpoint between the look at its name and the reading.
const attempts = 100

// Load reads a checkpoint: "latest", "best", a result of BestOf, or a policy version. Every file of it is checked against the hash that was
// stored with it; ErrCorrupt names the first that differs. An error lists the checkpoints there are. The states have RawMeta in place of Meta.
func (r *Run) Load(which string) (Checkpoint, error) {
	root := filepath.Join(r.Dir, checkpointsDir)
	folder := ""
	for range attempts {
		next, err := resolve(root, which)
		if err == nil && next == folder { // the pointer has not moved: the files are missing
			break
		}
		var c Checkpoint
		if folder = next; err == nil {
			c, err = load(root, folder)
		}
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return Checkpoint{}, fmt.Errorf("checkpoint %s of run %s: %w%s", which, r.id, err, others(root, folder))
		}
		if folder == "" {
			break
		}
	}
	return Checkpoint{}, fmt.Errorf("checkpoint %s of run %s %w%s", which, r.id, ErrNotFound, others(root, folder))
}

func load(root, folder string) (Checkpoint, error) {
	dir := filepath.Join(root, folder)
	m, err := readManifest(dir)
	if err != nil {
		if _, statErr := os.Stat(dir); statErr == nil && errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s is %w: it is not there", filepath.Join(dir, manifestFile), ErrCorrupt)
		}
		return Checkpoint{}, err
	}
	c := Checkpoint{Components: make(map[string]component.State), PolicyVersion: m.PolicyVersion,
		EnvSteps: m.EnvSteps, Change: m.Change, MeanReturn: math.NaN(), Exact: m.Exact, WhyNotExact: m.WhyNotExact}
	if m.MeanReturn != nil {
		c.MeanReturn = *m.MeanReturn
	}
	for _, name := range sortedNames(m.Components) {
		s, err := m.state(dir, m.Components[name])
		if err != nil {
			return Checkpoint{}, err
		}
		c.Components[name] = s
	}
	return c, nil
}

// state reads the files of one component.
func (m *manifest) state(dir string, e componentEntry) (component.State, error) {
	s := component.State{RawMeta: e.Meta}
	if compact, err := encodeMeta(s); err == nil {
		s.RawMeta = compact
	}
	if e.Tensors != "" {
		b, err := m.read(dir, e.Tensors)
		if err != nil {
			return s, err
		}
		if s.Tensors, _, err = DecodeTensors(b); err != nil {
			return s, fmt.Errorf("%s: %w", filepath.Join(dir, e.Tensors), err)
		}
	}
	for blob, file := range e.Blobs {
		b, err := m.read(dir, file)
		if err != nil {
			return s, err
		}
		if s.Blobs == nil {
			s.Blobs = make(map[string][]byte)
		}
		s.Blobs[blob] = b
	}
	return s, nil
}

// read reads one file and compares it with the manifest.
func (m *manifest) read(dir, name string) ([]byte, error) {
	path := filepath.Join(dir, name)
	want, ok := m.Files[name]
	if !ok || name != filepath.Base(name) || !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%s is %w: it names the file %q without listing it", filepath.Join(dir, manifestFile), ErrCorrupt, name)
	}
	b, err := files.Read(path, max(want.Bytes, 0))
	if errors.Is(err, files.ErrTooLarge) {
		return nil, fmt.Errorf("%s is %w: it has more than the %d bytes that were written", path, ErrCorrupt, want.Bytes)
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, statErr := os.Stat(dir); statErr == nil {
			return nil, fmt.Errorf("%s is %w: it is not there", path, ErrCorrupt)
		}
	}
	if err != nil {
		return nil, err
	}
	if int64(len(b)) != want.Bytes {
		return nil, fmt.Errorf("%s is %w: it has %d bytes, %d were written", path, ErrCorrupt, len(b), want.Bytes)
	}
	if hexHash(b) != want.SHA256 {
		return nil, fmt.Errorf("%s is %w: its hash does not match", path, ErrCorrupt)
	}
	return b, nil
}

// stored is a checkpoint on disk.
type stored struct {
	folder string
	m      *manifest
}

// scan returns the checkpoints whose manifests can be read, the one saved last first.
func scan(root string) []stored {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil
	}
	var all []stored
	for _, e := range entries {
		if _, _, ok := parseFolder(e.Name()); !ok {
			continue
		}
		if m, err := readManifest(filepath.Join(root, e.Name())); err == nil {
			all = append(all, stored{e.Name(), m})
		}
	}
	slices.SortStableFunc(all, func(a, b stored) int { return cmp.Compare(b.m.Sequence, a.m.Sequence) })
	return all
}

// resolve returns the folder of a checkpoint.
func resolve(root, which string) (string, error) {
	if which == Latest || which == "" || isBest(which) {
		if which == "" {
			which = Latest
		}
		p, err := readPointer(root, which)
		return p.Checkpoint, err
	}
	version, err := strconv.ParseUint(which, 10, 64)
	if err != nil {
		return "", fmt.Errorf("want %s, %s or a policy version", Latest, Best)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return "", err
	}
	found, newest := "", uint64(0)
	for _, e := range entries {
		if v, again, ok := parseFolder(e.Name()); ok && v == version && again > newest {
			found, newest = e.Name(), again
		}
	}
	if found == "" {
		return "", fs.ErrNotExist
	}
	return found, nil
}

// others lists the other checkpoints, for the end of an error.
func others(root, folder string) string {
	latest, _ := readPointer(root, Latest)
	var names []string
	for _, s := range scan(root) {
		if s.folder == folder {
			continue
		}
		name := strconv.FormatUint(s.m.PolicyVersion, 10)
		if s.folder == latest.Checkpoint {
			name += " (latest)"
		}
		for _, best := range bestAt(root, s.folder) {
			name += " (" + best + ")"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "; the run has no other checkpoint"
	}
	return "; there are also " + strings.Join(names, ", ")
}

// bestAt says of which policies a checkpoint is the best: "best", "best of rival".
func bestAt(root, folder string) (list []string) {
	for _, which := range bests(root) {
		if p, err := readPointer(root, which); err == nil && p.Checkpoint == folder {
			list = append(list, strings.Replace(which, bestOf(""), Best+" of ", 1))
		}
	}
	return list
}
