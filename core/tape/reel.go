package tape

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrFormat is wrapped by errors in a file's contents.
var ErrFormat = errors.New("not a tape")

// maxRecord bounds a record.
const maxRecord = 1 << 30

// Reel is what a ring has kept. It is for one goroutine.
type Reel struct {
	Streams  []*Track
	episodes []Told
	failures []Failed
	byID     map[trackID]*Track
	open     map[string]*os.File
}

type trackID struct {
	session uint64
	id      uint32
}

// Track is a stream as it was kept.
type Track struct {
	Head
	Records []Record // without heads and episodes
	Whole   bool     // its beginning is kept
	session uint64
}

// Record is one record; Read has its content.
type Record struct {
	Kind Kind
	At   uint64
	path string
	from int64
	size int
}

// Told is an episode, and where it is.
type Told struct {
	Episode
	Of *Track
	At uint64 // position behind its last step
}

// Failed is a failure, and where it is.
type Failed struct {
	Failure
	Of *Track
	At uint64 // position behind the steps that were made, the one that failed too
}

// Open reads which streams and episodes a folder has. A file that its writer has not completed is read as far as it goes.
func Open(dir string) (*Reel, error) {
	paths, err := list(dir)
	if err != nil {
		return nil, err
	}
	r := &Reel{byID: map[trackID]*Track{}, open: map[string]*os.File{}}
	for _, path := range paths {
		if err := r.scan(path); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", path, err), r.Close())
		}
	}
	return r, nil
}

// Close closes the files.
func (r *Reel) Close() error {
	var errs []error
	for _, f := range r.open {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Episodes are all episodes, in the order in which they were noted.
func (r *Reel) Episodes() []Told { return r.episodes }

// Failures are all failures, in the order in which they were noted.
func (r *Reel) Failures() []Failed { return r.failures }

// Before returns the stream that another one's environments have continued, nil where that is not kept.
func (r *Reel) Before(t *Track) *Track {
	if !t.Kept {
		return nil
	}
	return r.byID[trackID{t.session, t.After}]
}

// scan reads the heads of a file's records.
func (r *Reel) scan(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	r.open[path] = f
	in := bufio.NewReaderSize(f, 1<<16)
	var first [len(magic) + 8]byte
	if _, err := io.ReadFull(in, first[:]); err != nil || string(first[:len(magic)]) != magic {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil // nothing has been written yet
		}
		return errors.Join(ErrFormat, err)
	}
	session, at := binary.LittleEndian.Uint64(first[len(magic):]), int64(len(first))
	for {
		var head [headBytes]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return tolerable(err)
		}
		size := int(binary.LittleEndian.Uint32(head[13:]))
		if at += headBytes; size > maxRecord {
			return fmt.Errorf("%w: a record of %d bytes", ErrFormat, size)
		}
		x := Record{Kind(head[0]), binary.LittleEndian.Uint64(head[5:]), path, at, size}
		if err := r.take(in, trackID{session, binary.LittleEndian.Uint32(head[1:])}, x); err != nil {
			return tolerable(err)
		}
		at += int64(size)
	}
}

// tolerable is nil for the end of a file.
func tolerable(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// take takes in a record, whose content comes next.
func (r *Reel) take(in *bufio.Reader, id trackID, x Record) error {
	t := r.byID[id]
	switch {
	case x.Kind == HeadOf:
		doc, err := whole(in, x.size)
		if err != nil {
			return err
		}
		return r.head(id, doc, t, x.At != again)
	case t == nil: // it ended in a file that is gone
		_, err := in.Discard(x.size)
		return err
	case x.Kind == Ended:
		var b [episodeBytes]byte
		if x.size != len(b) {
			return fmt.Errorf("%w: an episode of %d bytes", ErrFormat, x.size)
		}
		if _, err := io.ReadFull(in, b[:]); err != nil {
			return err
		}
		e := Told{Of: t, At: x.At}
		e.decode(b[:])
		r.episodes = append(r.episodes, e)
		return nil
	case x.Kind == Lost && x.size > 0:
		doc, err := whole(in, x.size)
		if err != nil {
			return err
		}
		f := Failed{Of: t, At: x.At}
		if err := json.Unmarshal(doc, &f.Failure); err != nil {
			return fmt.Errorf("%w: %w", ErrFormat, err)
		}
		r.failures = append(r.failures, f)
		t.Records = append(t.Records, x)
		return nil
	}
	if _, err := in.Discard(x.size); err != nil {
		return err
	}
	t.Records = append(t.Records, x)
	return nil
}

// whole reads a record's content.
func whole(in *bufio.Reader, size int) ([]byte, error) {
	doc := make([]byte, size)
	_, err := io.ReadFull(in, doc)
	return doc, err
}

// head takes in the head of a stream.
func (r *Reel) head(id trackID, doc []byte, t *Track, begins bool) error {
	var h Head
	if err := json.Unmarshal(doc, &h); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if h.Envs < 1 || h.Agents < 1 || h.First < 0 {
		return fmt.Errorf("%w: a stream of %d environments of %d agents", ErrFormat, h.Envs, h.Agents)
	}
	if t == nil {
		t = &Track{session: id.session, Whole: begins}
		r.byID[id] = t
		r.Streams = append(r.Streams, t)
	}
	t.Head = h
	return nil
}

// Read returns the content of a record.
func (r *Reel) Read(x *Record) ([]byte, error) {
	b := make([]byte, x.size)
	_, err := r.open[x.path].ReadAt(b, x.from)
	return b, err
}
