package runs

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/rlhost/rlhost/core/component"
)

// Checkpoint is the state of all components of a run at one dataset boundary.
type Checkpoint struct {
	Components    map[string]component.State // by component, such as learner or rollout[0]
	PolicyVersion uint64
	EnvSteps      uint64
	Change        uint64  // number of the newest change, in the run's events, that had been made; 0 if none
	MeanReturn    float64 // of the leading policy, over the window; NaN while that is not full: such a checkpoint is never the best
	// MeanReturns are the mean returns of the policies that do not lead, by their names; a policy whose window is not full has none. Load
	// leaves them out.
	MeanReturns map[string]float64
	Exact       bool   // whether a run resumed from here equals an uninterrupted one
	WhyNotExact string // one sentence, where Exact is false
}

// Save writes a checkpoint, makes it the latest and, for each policy whose mean return is at least that of its best so far, the
// best; then it removes all that Retain does not keep. Checkpoints saved before stay as they are whenever it fails. An error
// says what to do, is counted, and the run can continue.
func (r *Run) Save(c Checkpoint) error { return r.save(c, true) }

// SaveEvaluated writes a checkpoint if its mean return, from an evaluation, is at least the best so far for some policy, and makes it
// the best for all such policies. The latest stays the latest.
func (r *Run) SaveEvaluated(c Checkpoint) error {
	r.mu.Lock()
	keepsBest := r.keep.Best
	r.mu.Unlock()
	root := filepath.Join(r.Dir, checkpointsDir)
	if !keepsBest || !slices.ContainsFunc(c.means(), func(m mean) bool { return m.beats(root) }) {
		return nil
	}
	return r.save(c, false)
}

// mean is the mean return of a policy, with the pointer to the checkpoint that has its best.
type mean struct {
	pointer string
	value   float64
}

// means returns the known ones of a checkpoint, the leading policy's first.
func (c *Checkpoint) means() (list []mean) {
	add := func(pointer string, v float64) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			list = append(list, mean{pointer, v})
		}
	}
	add(Best, c.MeanReturn)
	for _, policy := range sortedNames(c.MeanReturns) {
		add(bestOf(policy), c.MeanReturns[policy])
	}
	return list
}

// beats reports whether a mean is at least that of the best checkpoint so far.
func (m mean) beats(root string) bool {
	best, err := readPointer(root, m.pointer)
	return err != nil || best.MeanReturn == nil || *best.MeanReturn <= m.value
}

func (r *Run) save(c Checkpoint, latest bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.writable(); err != nil {
		return err
	}
	root := filepath.Join(r.Dir, checkpointsDir)
	before := scan(root)
	m, folder, err := r.store(root, before, &c, latest)
	if err != nil {
		r.failed++
		return fmt.Errorf("checkpoint %d of run %s is not saved: %w (%s)", c.PolicyVersion, r.id,
			advise(err, root), leftover(before))
	}
	for _, x := range c.means() {
		if r.keep.Best && x.beats(root) {
			err = errors.Join(err, r.point(root, x.pointer, folder, m, &x.value))
		}
	}
	if err := errors.Join(err, r.prune(root)); err != nil {
		r.failed++
		return fmt.Errorf("checkpoint %d of run %s is saved, the older ones are not in order: %w", c.PolicyVersion,
			r.id, advise(err, root))
	}
	return nil
}

// leftover describes the files that a failed save leaves.
func leftover(before []stored) string {
	if len(before) == 0 {
		return "the run has no checkpoint yet"
	}
	return fmt.Sprintf("checkpoint %d is still there", before[0].m.PolicyVersion)
}

// store writes a checkpoint, and perhaps makes it the latest.
func (r *Run) store(root string, before []stored, c *Checkpoint, latest bool) (m *manifest, folder string, err error) {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, "", err
	}
	if err := removeTemps(root); err != nil {
		return nil, "", err
	}
	m = &manifest{Format: Format, Rlhost: r.info.Rlhost, Run: r.id, Sequence: 1,
		PolicyVersion: c.PolicyVersion, EnvSteps: c.EnvSteps, Change: c.Change, Exact: c.Exact, WhyNotExact: c.WhyNotExact}
	for _, x := range c.means() {
		if x.pointer == Best {
			m.MeanReturn = &x.value
		}
	}
	if len(before) > 0 {
		m.Sequence = before[0].m.Sequence + 1
	}
	temp := filepath.Join(root, tempPrefix+"checkpoint")
	if err := r.stage(temp, m, c); err != nil {
		return nil, "", errors.Join(err, os.RemoveAll(temp))
	}
	folder = freeFolder(root, c.PolicyVersion)
	if err := r.disk.rename(temp, filepath.Join(root, folder)); err != nil {
		return nil, "", errors.Join(err, os.RemoveAll(temp))
	}
	if !latest {
		return m, folder, r.disk.sync(root)
	}
	return m, folder, r.publish(root, folder, m)
}

// publish makes a checkpoint the latest. If it cannot, it removes the checkpoint, which would take space without
// being found.
func (r *Run) publish(root, folder string, m *manifest) error {
	err := r.disk.sync(root)
	if err == nil {
		err = r.point(root, Latest, folder, m, m.MeanReturn)
	}
	if err == nil {
		return nil
	}
	if p, readErr := readPointer(root, Latest); readErr == nil && p.Checkpoint == folder {
		return err // named, though perhaps not yet on the disk
	}
	return errors.Join(err, discard(root, folder))
}

// stage writes all files of a checkpoint into a temporary folder.
func (r *Run) stage(temp string, m *manifest, c *Checkpoint) error {
	if err := r.disk.check("mkdir", temp); err != nil {
		return err
	}
	if err := os.Mkdir(temp, 0o755); err != nil {
		return err
	}
	w := stager{disk: &r.disk, dir: temp, files: make(map[string]fileEntry)}
	m.Components, m.Files = make(map[string]componentEntry), w.files
	for _, name := range sortedNames(c.Components) {
		entry, err := w.component(name, c.Components[name])
		if err != nil {
			return fmt.Errorf("component %s: %w", name, err)
		}
		m.Components[name] = entry
	}
	b, err := m.encode()
	if err != nil {
		return err
	}
	if err := r.disk.write(filepath.Join(temp, manifestFile), b); err != nil {
		return err
	}
	return r.disk.sync(temp)
}

// stager writes files and records them for the manifest.
type stager struct {
	disk  *disk
	dir   string
	files map[string]fileEntry
}

func (w *stager) component(name string, s component.State) (componentEntry, error) {
	var e componentEntry
	base, err := fileName(name, false)
	if err != nil {
		return e, err
	}
	if e.Meta, err = encodeMeta(s); err != nil {
		return e, err
	}
	if len(s.Tensors) > 0 {
		b, err := EncodeTensors(s.Tensors, nil)
		if err != nil {
			return e, err
		}
		e.Tensors = base + ".safetensors"
		if err := w.file(e.Tensors, b); err != nil {
			return e, err
		}
	}
	for _, blob := range sortedNames(s.Blobs) {
		part, err := fileName(blob, true)
		if err != nil {
			return e, err
		}
		if e.Blobs == nil {
			e.Blobs = make(map[string]string)
		}
		e.Blobs[blob] = base + "." + part + ".bin"
		if err := w.file(e.Blobs[blob], s.Blobs[blob]); err != nil {
			return e, err
		}
	}
	return e, nil
}

func (w *stager) file(name string, b []byte) error {
	w.files[name] = fileEntry{Bytes: int64(len(b)), SHA256: hexHash(b)}
	return w.disk.write(filepath.Join(w.dir, name), b)
}

// freeFolder returns an unused folder name for a save of that version.
func freeFolder(root string, version uint64) string {
	for again := uint64(1); ; again++ {
		name := folderName(version, again)
		if _, err := os.Lstat(filepath.Join(root, name)); err != nil {
			return name
		}
	}
}

// discard removes a checkpoint's folder so that it is complete as long as it has its name.
func discard(root, name string) error {
	temp := filepath.Join(root, tempPrefix+"old")
	if err := os.RemoveAll(temp); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(root, name), temp); err != nil {
		return err
	}
	return os.RemoveAll(temp)
}

// milestones returns the first checkpoint at or after each multiple of so many env steps; all is sorted, the newest first.
func milestones(all []stored, every uint64) map[string]bool {
	folders := map[string]bool{}
	if every == 0 {
		return folders
	}
	reached := uint64(0)
	for _, s := range slices.Backward(all) {
		if n := s.m.EnvSteps / every; n > reached {
			reached = n
			folders[s.folder] = true
		}
	}
	return folders
}

// prune removes the checkpoints that neither the retention nor a pointer keeps.
func (r *Run) prune(root string) error {
	pinned := make(map[string]bool)
	for _, which := range append(bests(root), Latest) {
		if p, err := readPointer(root, which); err == nil && (which == Latest || r.keep.Best) {
			pinned[p.Checkpoint] = true
		}
	}
	all := scan(root)
	first := milestones(all, r.keep.Every)
	versions := make(map[uint64]bool) // kept so far, newest first
	for _, s := range all {
		superseded := versions[s.m.PolicyVersion]
		if pinned[s.folder] || first[s.folder] || !superseded && len(versions) < max(r.keep.Newest, 1) {
			versions[s.m.PolicyVersion] = true
			continue
		}
		if err := discard(root, s.folder); err != nil {
			return err
		}
	}
	return nil
}
