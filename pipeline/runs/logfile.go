package runs

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/rlhost/rlhost/core/files"
)

// Names of the log and of its previous part.
const (
	logFile    = "log.jsonl"
	oldLogFile = "log.1.jsonl"
)

// LogBytes is how large a log gets before the next one is begun. Only one previous part is kept.
const LogBytes = 8 << 20

// LogFile is the log of a run: one JSON record a line, written as it comes. Methods may be called from any goroutine.
type LogFile struct {
	dir   string
	limit int64

	mu        sync.Mutex
	closed    bool
	file      *os.File // nil after Close, and while none can be opened
	size      int64
	lost      uint64
	followers map[*Follower]struct{}
}

// OpenLog opens the run's log to append to it. The run must be locked.
func (r *Run) OpenLog() (*LogFile, error) { return r.openLog(LogBytes) }

func (r *Run) openLog(limit int64) (*LogFile, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lock == nil {
		return nil, errReadOnly
	}
	l := &LogFile{dir: r.Dir, limit: limit, followers: map[*Follower]struct{}{}}
	if err := l.open(); err != nil {
		return nil, advise(err, r.Dir)
	}
	return l, nil
}

// open opens the newest part, after its last whole line.
func (l *LogFile) open() error {
	f, err := files.OpenFile(filepath.Join(l.dir, logFile), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	end, err := wholeLines(f)
	if err == nil {
		err = f.Truncate(end)
	}
	if err == nil {
		_, err = f.Seek(end, io.SeekStart)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.size = f, end
	return nil
}

// Write appends one record with its newline. A record that cannot be written is counted and not returned as an
// error: the logger cannot handle one.
func (l *LogFile) Write(record []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for f := range l.followers {
		f.offer(record)
	}
	if l.closed || l.add(record) != nil {
		l.lost++
	}
	return len(record), nil
}

// add writes a record, in a new part if this one is full.
func (l *LogFile) add(record []byte) error {
	if l.file == nil {
		if err := l.open(); err != nil {
			return err
		}
	}
	if l.size > 0 && l.size+int64(len(record)) > l.limit {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	n, err := l.file.Write(record)
	if err == nil {
		l.size += int64(n)
		return nil
	}
	// Half a record would make the next one unreadable.
	_, seekErr := l.file.Seek(l.size, io.SeekStart)
	return errors.Join(err, l.file.Truncate(l.size), seekErr)
}

func (l *LogFile) rotate() error {
	path := filepath.Join(l.dir, logFile)
	if err := os.Rename(path, filepath.Join(l.dir, oldLogFile)); err != nil {
		return err
	}
	old := l.file
	l.file = nil
	return errors.Join(old.Close(), l.open())
}

// Lost counts the records that could not be written.
func (l *LogFile) Lost() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// Close closes the file; records that come later are only counted. Followers end.
func (l *LogFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for f := range l.followers {
		delete(l.followers, f)
		close(f.records)
	}
	l.closed = true
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return f.Close()
}

// followerRoom is how many records may wait for a follower.
const followerRoom = 1024

// Follower gets the records that are written while it follows, except when followerRoom of them wait already.
type Follower struct {
	log     *LogFile
	records chan []byte
}

// Follow returns a follower of all later records.
func (l *LogFile) Follow() *Follower {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &Follower{log: l, records: make(chan []byte, followerRoom)}
	if l.closed {
		close(f.records)
		return f
	}
	l.followers[f] = struct{}{}
	return f
}

// Records gets each record, with its newline. It is closed when the log is.
func (f *Follower) Records() <-chan []byte { return f.records }

// Close ends the following.
func (f *Follower) Close() {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	delete(f.log.followers, f)
}

// offer sends a record if there is room. The caller must hold log.mu.
func (f *Follower) offer(record []byte) {
	select {
	case f.records <- append([]byte(nil), record...):
	default:
		// Logging does not wait for a slow follower.
	}
}

// ReadLog calls fn with each record of the run's log, oldest first, until fn returns false. A record that is cut off is
// left out. The slice is valid during the call.
func (r *Run) ReadLog(fn func(record []byte) bool) error {
	for _, name := range []string{oldLogFile, logFile} {
		goOn, err := readRecords(filepath.Join(r.Dir, name), fn)
		if err != nil || !goOn {
			return err
		}
	}
	return nil
}

func readRecords(path string, fn func([]byte) bool) (goOn bool, err error) {
	f, err := files.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	reader := bufio.NewReader(f)
	for {
		record, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if !fn(record) {
			return false, nil
		}
	}
}
