package runs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rlhost/rlhost/core/files"
)

// journalFile is the journal of a search.
const journalFile = "journal.jsonl"

// maxJournal bounds a journal that is read.
const maxJournal = 1 << 30

// Journal is the journal of a search: a line for each thing that has happened. What was appended is on the disk.
type Journal struct {
	dir  string
	disk *disk
	file *os.File
	size int64
}

// Journal returns the whole lines of the set's journal, without their ends, in order; none where there is no journal. Half a last line, left
// by a killed writer, is no line.
func (s *Set) Journal() ([][]byte, error) {
	b, err := files.Read(filepath.Join(s.Dir, journalFile), maxJournal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return splitLines(b), nil
}

// splitLines returns the whole lines of a text.
func splitLines(b []byte) (lines [][]byte) {
	for {
		line, rest, whole := bytes.Cut(b, []byte{'\n'})
		if !whole {
			return lines
		}
		lines, b = append(lines, line), rest
	}
}

// OpenJournal opens the journal of a locked set to append to it, after its last whole line.
func (s *Set) OpenJournal() (*Journal, error) {
	if s.lock == nil {
		return nil, errReadOnly
	}
	f, err := files.OpenFile(filepath.Join(s.Dir, journalFile), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", advise(err, s.Dir))
	}
	end, err := wholeLines(f)
	if err == nil {
		err = f.Truncate(end)
	}
	if err == nil {
		err = s.disk.sync(s.Dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open journal: %w", advise(err, s.Dir)), f.Close())
	}
	return &Journal{s.Dir, &s.disk, f, end}, nil
}

// Append writes a line, which has its end, and flushes it to the disk. After an error none of it is there.
func (j *Journal) Append(line []byte) error {
	if _, err := j.file.Seek(j.size, io.SeekStart); err != nil {
		return err
	}
	if err := j.disk.fill(j.file, line); err != nil {
		return errors.Join(fmt.Errorf("journal: %w", advise(err, j.dir)), j.file.Truncate(j.size))
	}
	j.size += int64(len(line))
	return nil
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// RunDirs returns the folders that the runs of a set are made in: of each seed, or of each trial and seed of a search.
func (s *Set) RunDirs() ([]string, error) {
	info := s.Info()
	if info.Sweep != nil {
		return filepath.Glob(filepath.Join(escaped(s.Dir), trialsFolder, "*", "seed-*"))
	}
	var dirs []string
	for _, seed := range info.Seeds {
		dirs = append(dirs, s.SeedDir(seed.Seed))
	}
	return dirs, nil
}

// escaped writes a path so that filepath.Glob takes it as it stands.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// trialsFolder holds the runs of a search, and not of its confirmation.
const trialsFolder = "trials"

// TrialDir returns the folder that the runs of a trial with a seed are made in: in the search, or in its confirmation.
func (s *Set) TrialDir(trial int, seed uint64, confirm bool) string {
	part := trialsFolder
	if confirm {
		part = "confirmed"
	}
	return filepath.Join(s.Dir, part, fmt.Sprintf("%04d", trial), fmt.Sprintf("seed-%d", seed))
}
