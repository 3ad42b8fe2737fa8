package recording

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
)

// magic is the first line.
const magic = "rlhost recording 1\n"

// Bounds of a file.
const (
	maxDocument = 4 << 20
	maxSchemas  = 255
)

// Errors.
var (
	// ErrFormat is wrapped by errors in a file's contents; for a file that ends too early the error is io.ErrUnexpectedEOF too.
	ErrFormat = errors.New("not a recording")
	// ErrFull is returned when a message would exceed the limit of a Writer. Nothing of it is written.
	ErrFull = errors.New("the recording is as large as it may be")
)

// frame is a document.
type frame struct {
	Schema  *native.Schema `json:"schema,omitempty"`
	Message *message       `json:"message,omitempty"`
	Bytes   int            `json:"bytes"` // of a block: after a message, the length of its block; with a schema, the length of each
}

type message struct {
	Signal        string    `json:"signal"`
	Payload       string    `json:"payload"`
	Kind          uint16    `json:"kind"`
	T             uint32    `json:"t"`
	Split         uint32    `json:"split"`
	PolicyVersion uint64    `json:"policy_version"`
	Inline        [2]uint64 `json:"inline"`
	Schema        int       `json:"schema,omitempty"` // number of an earlier schema, from 1; 0 = no block
}

// Writer writes a recording. It is for one goroutine.
type Writer struct {
	to    io.Writer
	left  int64
	known map[*arena.Arena]int
}

// NewWriter begins a recording of at most limit bytes.
func NewWriter(to io.Writer, limit int64) (*Writer, error) {
	w := &Writer{to: to, left: limit, known: map[*arena.Arena]int{}}
	return w, w.put([]byte(magic))
}

// Write adds a message that has passed on a signal, COMPONENT.PORT, with that payload. block is its block, which lies in an arena, or
// nil; a block of an arena with a private schema is left out.
func (w *Writer) Write(signal, payload string, m *hostabi.Message, block []byte, of *arena.Arena) error {
	out := &message{Signal: signal, Payload: payload, Kind: m.Kind, T: m.T, Split: m.Split, PolicyVersion: m.PolicyVersion, Inline: m.Inline}
	var buf bytes.Buffer
	number := 0
	if block != nil {
		if doc := arena.Document(of.Schema()); doc != nil {
			if number = w.known[of]; number == 0 {
				number = len(w.known) + 1
				if err := add(&buf, &frame{Schema: doc, Bytes: len(block)}, nil); err != nil {
					return err
				}
			}
		}
	}
	if number > maxSchemas {
		return fmt.Errorf("%w: more than %d arenas", ErrFull, maxSchemas)
	}
	if out.Schema = number; number == 0 {
		block = nil
	}
	if err := add(&buf, &frame{Message: out, Bytes: len(block)}, block); err != nil {
		return err
	}
	if err := w.put(buf.Bytes()); err != nil {
		return err
	}
	if number > 0 {
		w.known[of] = number
	}
	return nil
}

// add adds a frame.
func add(to *bytes.Buffer, f *frame, block []byte) error {
	doc, err := json.Marshal(f)
	if err != nil {
		return err
	}
	var n [4]byte
	binary.LittleEndian.PutUint32(n[:], uint32(len(doc)))
	to.Write(n[:])
	to.Write(doc)
	to.Write(block)
	return nil
}

func (w *Writer) put(b []byte) error {
	if int64(len(b)) > w.left {
		return ErrFull
	}
	w.left -= int64(len(b))
	_, err := w.to.Write(b)
	return err
}

// Message is one of a recording.
type Message struct {
	Signal, Payload string
	hostabi.Message              // without a Handle
	Block           []byte       // nil: none
	Schema          arena.Schema // of the block, as trajectory.DecodeSchema returns it
}

// Reader reads a recording. It is for one goroutine.
type Reader struct {
	from    io.Reader
	schemas []schema
}

type schema struct {
	of    arena.Schema
	bytes int
}

// NewReader begins to read. The error wraps ErrFormat where the first line is another.
func NewReader(from io.Reader) (*Reader, error) {
	first := make([]byte, len(magic))
	if _, err := io.ReadFull(from, first); err != nil || string(first) != magic {
		return nil, fmt.Errorf("%w: it does not begin with %q", ErrFormat, magic)
	}
	return &Reader{from: from}, nil
}

// Next returns the next message; io.EOF after the last one. Any other error wraps ErrFormat, and nothing can be read after it.
func (r *Reader) Next() (*Message, error) {
	for {
		f, err := r.frame()
		if err != nil {
			return nil, err
		}
		if f.Schema == nil {
			return r.message(f)
		}
		of, err := trajectory.DecodeSchema(f.Schema, f.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		if r.schemas = append(r.schemas, schema{of, f.Bytes}); len(r.schemas) > maxSchemas {
			return nil, fmt.Errorf("%w: more than %d schemas", ErrFormat, maxSchemas)
		}
	}
}

// frame reads a document.
func (r *Reader) frame() (*frame, error) {
	var n [4]byte
	if _, err := io.ReadFull(r.from, n[:]); errors.Is(err, io.EOF) {
		return nil, io.EOF
	} else if err != nil {
		return nil, cut(err)
	}
	size := binary.LittleEndian.Uint32(n[:])
	if size > maxDocument {
		return nil, fmt.Errorf("%w: a document of %d bytes, at most %d", ErrFormat, size, maxDocument)
	}
	doc, err := r.bytes(int(size))
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(doc))
	d.DisallowUnknownFields()
	f := &frame{}
	if err := d.Decode(f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	switch {
	case d.More():
		return nil, fmt.Errorf("%w: something follows a document", ErrFormat)
	case (f.Schema == nil) == (f.Message == nil):
		return nil, fmt.Errorf("%w: a frame is a schema or a message", ErrFormat)
	case f.Bytes < 0 || f.Bytes > trajectory.MaxBlockBytes:
		return nil, fmt.Errorf("%w: a block of %d bytes", ErrFormat, f.Bytes)
	}
	return f, nil
}

// message reads the block of a message.
func (r *Reader) message(f *frame) (*Message, error) {
	x := f.Message
	m := &Message{Signal: x.Signal, Payload: x.Payload,
		Message: hostabi.Message{Kind: x.Kind, T: x.T, Split: x.Split, PolicyVersion: x.PolicyVersion, Inline: x.Inline}}
	switch {
	case x.Schema < 0 || x.Schema > len(r.schemas):
		return nil, fmt.Errorf("%w: schema %d of %d", ErrFormat, x.Schema, len(r.schemas))
	case x.Schema == 0 && f.Bytes != 0, x.Schema > 0 && f.Bytes != r.schemas[x.Schema-1].bytes:
		return nil, fmt.Errorf("%w: a block of %d bytes, and its schema says otherwise", ErrFormat, f.Bytes)
	case x.Schema == 0:
		return m, nil
	}
	var err error
	m.Schema = r.schemas[x.Schema-1].of
	m.Block, err = r.bytes(f.Bytes)
	return m, err
}

// bytes reads so many bytes, and makes no room for more than there are.
func (r *Reader) bytes(n int) ([]byte, error) {
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r.from, int64(n)); err != nil {
		return nil, cut(err)
	}
	return b.Bytes(), nil
}

// cut is the error of a file that ends, or cannot be read, within a frame.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %w", ErrFormat, err)
}
