package tape

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

// magic is the first line of a file.
const magic = "rlhost tape 1\n"

// Least is the smallest limit of a ring.
const Least = 1 << 20

// Sizes of the parts of a ring.
const (
	parts       = 16        // files that a full ring has at least
	headBytes   = 17        // of a record
	bufferBytes = 256 << 10 // waiting to be written
	flushEvery  = time.Second
)

// Kind says what a record has.
type Kind uint8

// Kinds of records.
const (
	HeadOf  Kind = 'H' // a Head as JSON; the stream begins with environments that have just been made
	Key     Kind = 'K' // the observation, its length before it, and a snapshot of the environments
	Resets  Kind = 'R' // a mask, one byte an environment, and seeds, 8 bytes an environment, or none
	Params  Kind = 'P' // reset parameters of the following resets and steps
	Actions Kind = 'A' // the actions of consecutive steps
	Ended   Kind = 'E' // an Episode
	Renewed Kind = 'N' // the environments are as good as new
	Lost    Kind = 'L' // nothing can be played from here to the next Key; a Failure as JSON, or nothing
)

// again is the position of a head that repeats an earlier one.
const again = 1

// Head describes the environments of a stream.
type Head struct {
	Name      string            `json:"name"` // component instance, such as rollout[0]
	Split     int               `json:"split"`
	Life      uint32            `json:"life"`  // see Life
	First     int               `json:"first"` // global index of environment 0
	Envs      int               `json:"envs"`
	Agents    int               `json:"agents"`
	Seed      uint64            `json:"seed"`
	Autoreset hostabi.Autoreset `json:"autoreset"`
	SoA       bool              `json:"soa"`
	Hash      string            `json:"sha256"` // of the source
	Loaded    json.RawMessage   `json:"loaded"` // component.Host.Loaded
	// After is the stream whose environments' state these took over, and the position; Kept says that there is one.
	After   uint32 `json:"after,omitempty"`
	AfterAt uint64 `json:"after_at,omitempty"`
	Kept    bool   `json:"kept,omitempty"`
	// Change is the number of the change of the run that the environments came with; 0 for the first ones.
	Change uint64 `json:"change,omitempty"`
	// Fresh says that at each reset an environment loses what outlives its episodes; see env.Lasting.
	Fresh bool `json:"fresh,omitempty"`
}

// Failure is a call at which environments failed.
type Failure struct {
	Env    int    `json:"env"` // global index, -1 if it is not known
	Reason string `json:"reason"`
}

// Life numbers the lives of a component instance: its environments count their episodes from 0 in each that begins without a state.
func Life(resumes, begun int) uint32 { return uint32(resumes)<<16 | uint32(begun)&0xffff }

// Episode is one that has ended.
type Episode struct {
	Env           uint32 // global index
	Agent         uint16
	Terminated    bool
	Length        uint32
	Number        uint32 // of the agent in the environment, in one life
	Return        float32
	PolicyVersion uint64
	Step          uint64 // its last one, as trajectory.Meta counts them
}

// Options of a ring.
type Options struct {
	Limit int64                            // bytes of all files; at least Least
	Ended func(of *Head, e Episode)        // gets each episode, on the goroutine of its environments; may be nil
	Fails func(err error)                  // gets the error that ends the recording; may be nil
	Gone  func(path string)                // gets each file that is removed for room; may be nil
	clock func() time.Time                 // nil: time.Now
	write func(f *os.File, b []byte) error // nil: f.Write
}

// Ring is the writer. A nil Ring records nothing. Any goroutine.
type Ring struct {
	dir     string
	o       Options
	session uint64        // number of its first file
	number  atomic.Uint64 // of the newest file

	mu      sync.Mutex // guards what follows
	file    *os.File
	buffer  []byte
	bytes   int64 // of the newest file, with the buffer
	keys    int64 // of them in keys
	old     []part
	streams []*Stream
	next    uint32
	flushed time.Time
	err     error
}

// part is a complete file.
type part struct {
	path  string
	bytes int64
}

// Create begins to record in a folder, which is made. Files that are there count for the limit.
func Create(dir string, o Options) (*Ring, error) {
	if o.Limit < Least {
		return nil, fmt.Errorf("a recording of %d bytes: want %d or more", o.Limit, Least)
	}
	if o.clock == nil {
		o.clock = time.Now
	}
	if o.write == nil {
		o.write = func(f *os.File, b []byte) error { _, err := f.Write(b); return err }
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	r := &Ring{dir: dir, o: o, next: 1}
	paths, err := list(dir)
	if err != nil {
		return nil, err
	}
	last := uint64(0)
	for _, p := range paths {
		stat, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		r.old = append(r.old, part{p, stat.Size()})
		last = numberOf(p)
	}
	r.session = last + 1
	r.number.Store(last)
	return r, r.begin()
}

// list returns the files of a ring, the oldest first.
func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); numberOf(path) > 0 {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

func fileName(number uint64) string { return fmt.Sprintf("%012d.tape", number) }

// numberOf returns the number in the name of a file of a ring, 0 for another file.
func numberOf(path string) (number uint64) {
	if _, err := fmt.Sscanf(filepath.Base(path), "%012d.tape", &number); err != nil || filepath.Base(path) != fileName(number) {
		return 0
	}
	return number
}

// begin begins a file, and removes the oldest ones for it. mu is held, except by Create.
func (r *Ring) begin() (err error) {
	if r.file != nil {
		if err := r.flush(); err != nil {
			return err
		}
		r.old = append(r.old, part{r.file.Name(), r.bytes})
		if err := r.file.Close(); err != nil {
			return err
		}
	}
	if err := r.makeRoom(r.o.Limit / parts); err != nil {
		return err
	}
	number := r.number.Load() + 1
	r.file, err = os.OpenFile(filepath.Join(r.dir, fileName(number)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	r.number.Store(number)
	r.buffer = binary.LittleEndian.AppendUint64(append(r.buffer[:0], magic...), r.session)
	r.bytes, r.keys, r.flushed = int64(len(r.buffer)), 0, r.o.clock()
	for _, s := range r.streams {
		if err := r.add(HeadOf, s.id, again, s.head, nil); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom removes the oldest files until so many bytes fit beside the others.
func (r *Ring) makeRoom(bytes int64) error {
	var all int64
	for _, p := range r.old {
		all += p.bytes
	}
	for len(r.old) > 0 && all+bytes > r.o.Limit {
		if err := os.Remove(r.old[0].path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if r.o.Gone != nil {
			r.o.Gone(r.old[0].path)
		}
		all -= r.old[0].bytes
		r.old = r.old[1:]
	}
	return nil
}

// add adds a record. mu is held.
func (r *Ring) add(k Kind, id uint32, at uint64, a, b []byte) error {
	need := headBytes + len(a) + len(b)
	if len(r.buffer)+need > bufferBytes {
		if err := r.flush(); err != nil {
			return err
		}
	}
	r.buffer = binary.LittleEndian.AppendUint32(append(r.buffer, byte(k)), id)
	r.buffer = binary.LittleEndian.AppendUint64(r.buffer, at)
	r.buffer = binary.LittleEndian.AppendUint32(r.buffer, uint32(len(a)+len(b)))
	r.buffer = append(append(r.buffer, a...), b...)
	r.bytes += int64(need)
	if len(r.buffer) >= bufferBytes {
		return r.flush()
	}
	return nil
}

// flush writes what waits. mu is held.
func (r *Ring) flush() error {
	err := r.o.write(r.file, r.buffer)
	if r.buffer = r.buffer[:0]; cap(r.buffer) > 4*bufferBytes {
		r.buffer = nil // it had a key
	}
	r.flushed = r.o.clock()
	if err == nil {
		err = r.makeRoom(r.bytes)
	}
	return err
}

// put adds a record, and begins another file where this one is full. Keys alone do not fill a file: each file begins with one a stream.
func (r *Ring) put(k Kind, id uint32, at uint64, a, b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	full := r.o.Limit / parts
	var err error
	if r.bytes > full && r.bytes-r.keys > max(full/2, r.keys) {
		err = r.begin()
	}
	if err == nil {
		err = r.add(k, id, at, a, b)
	}
	if k == Key {
		r.keys += int64(len(a) + len(b))
	}
	if err == nil && r.o.clock().Sub(r.flushed) > flushEvery {
		err = r.flush()
	}
	if r.err = err; err != nil && r.o.Fails != nil {
		r.o.Fails(err)
	}
}

// Flush writes what waits, for a reader.
func (r *Ring) Flush() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = r.flush()
	}
	return r.err
}

// Close ends the recording. It returns nothing of what Fails was told.
func (r *Ring) Close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return nil
	}
	if r.err == nil {
		r.err = r.flush()
	}
	err := r.file.Close()
	r.file, r.err = nil, errors.Join(r.err, os.ErrClosed)
	return err
}

// Stream is the record of one batch. A nil Stream records nothing. One goroutine at a time.
type Stream struct {
	r     *Ring
	id    uint32
	Head  Head
	head  []byte
	keyed uint64 // number of the file that has its newest key, or its beginning
}

// Stream begins a stream.
func (r *Ring) Stream(h Head) *Stream {
	if r == nil {
		return nil
	}
	s := &Stream{r: r, Head: h}
	s.describe()
	r.mu.Lock()
	s.id = r.next
	r.next++
	r.streams = append(r.streams, s)
	r.mu.Unlock()
	s.keyed = r.number.Load()
	r.put(HeadOf, s.id, 0, s.head, nil)
	return s
}

func (s *Stream) describe() {
	s.head, _ = json.Marshal(s.Head) // of strings, numbers and a document
}

// ID is the number of the stream in its process.
func (s *Stream) ID() uint32 { return s.id }

// Follows notes that the environments have taken the state of another stream's over, at a position of that; a Key comes next.
func (s *Stream) Follows(from *Stream, at uint64) {
	if s == nil || from == nil {
		return
	}
	s.Head.After, s.Head.AfterAt, s.Head.Kept = from.id, at, true
	s.r.mu.Lock()
	s.describe()
	s.r.mu.Unlock()
	s.r.put(HeadOf, s.id, again, s.head, nil)
}

// Due reports whether a key is wanted: the ring has begun another file since the last one.
func (s *Stream) Due() bool { return s.keyed != s.r.number.Load() }

// Keyed notes that no key is due until another file begins: one has been written, or none can be.
func (s *Stream) Keyed() { s.keyed = s.r.number.Load() }

// Write adds a record at a position, its content in two parts. It keeps neither.
func (s *Stream) Write(k Kind, at uint64, a, b []byte) { s.r.put(k, s.id, at, a, b) }

// End notes an episode, whose last step is the one before a position.
func (s *Stream) End(at uint64, e Episode) {
	var b [episodeBytes]byte
	e.encode(b[:])
	s.r.put(Ended, s.id, at, b[:], nil)
	if s.r.o.Ended != nil {
		s.r.o.Ended(&s.Head, e)
	}
}

// Close ends the stream: later files do not have its head.
func (s *Stream) Close() {
	if s == nil {
		return
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.r.streams = slices.DeleteFunc(s.r.streams, func(x *Stream) bool { return x == s })
}
