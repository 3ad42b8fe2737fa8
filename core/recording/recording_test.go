package recording

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
)

// recorded returns a recording of a trajectory, an episode, and the same trajectory again, and the block.
func recorded(t testing.TB, limit int64) (file, block []byte, err error) {
	t.Helper()
	schema, err := trajectory.NewSchema(testkit.Spec(3, 2, false), trajectory.Shape{Steps: 2, Envs: 2})
	if err != nil {
		t.Fatal(err)
	}
	set := arena.NewSet()
	defer set.Close()
	a, err := set.Add(arena.Config{Name: "blocks", Blocks: 1, BlockBytes: schema.Bytes, Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	block = make([]byte, schema.Bytes)
	for i := range block {
		block[i] = byte(i)
	}
	var b bytes.Buffer
	w, err := NewWriter(&b, limit)
	if err != nil {
		t.Fatal(err)
	}
	m := &hostabi.Message{Kind: 3, T: 4, Split: 5, PolicyVersion: 6, Inline: [2]uint64{1 << 63, 8}}
	err = errors.Join(w.Write("rollout.trajectories", "trajectory", m, block, a), w.Write("rollout.episodes", "episode", m, nil, nil),
		w.Write("rollout.trajectories", "trajectory", m, block, a))
	return b.Bytes(), block, err
}

func TestRecording_IsReadAsItWasWritten(t *testing.T) {
	file, block, err := recorded(t, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for i, payload := range []string{"trajectory", "episode", "trajectory"} {
		m, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if m.Payload != payload || m.Kind != 3 || m.T != 4 || m.Split != 5 || m.PolicyVersion != 6 || m.Inline != [2]uint64{1 << 63, 8} {
			t.Errorf("message %d: %+v", i, m.Message)
		}
		if s, ok := m.Schema.(*trajectory.Schema); (payload == "trajectory") != (ok && s.Shape.Envs == 2 && slices.Equal(m.Block, block)) {
			t.Errorf("message %d has %d bytes of schema %v", i, len(m.Block), m.Schema)
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) || errors.Is(err, ErrFormat) {
		t.Errorf("behind the last message: %v", err)
	}
}

// A file that has been cut off anywhere within a frame says so.
func TestReader_TellsOfACutFile(t *testing.T) {
	file, _, err := recorded(t, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	ends := 0
	for n := len(magic) + 1; n < len(file); n += 101 {
		err := readAll(file[:n])
		if err == nil {
			ends++ // between two frames
		} else if !errors.Is(err, ErrFormat) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d of %d bytes: %v", n, len(file), err)
		}
	}
	if ends > 3 { // there are so many places between frames
		t.Errorf("%d lengths end a recording", ends)
	}
	if err := readAll([]byte(magic)); err != nil {
		t.Errorf("a recording of nothing: %v", err)
	}
}

func TestWriter_StopsAtItsLimit(t *testing.T) {
	file, _, err := recorded(t, 1<<13)
	if !errors.Is(err, ErrFull) || len(file) > 1<<13 {
		t.Errorf("%d bytes written, %v", len(file), err)
	}
	if err := readAll(file); err != nil {
		t.Errorf("what is written cannot be read: %v", err)
	}
}

func readAll(file []byte) error {
	r, err := NewReader(bytes.NewReader(file))
	for err == nil {
		_, err = r.Next()
	}
	if errors.Is(err, io.EOF) && !errors.Is(err, ErrFormat) {
		return nil
	}
	return err
}

// Whatever a file holds, reading it ends in messages that fit their schemas, or in ErrFormat.
func FuzzReader(f *testing.F) {
	file, _, err := recorded(f, 1<<20)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	f.Add([]byte(magic))
	f.Add([]byte(magic + "\x1b\x00\x00\x00{\"message\":{},\"bytes\":1000}"))
	f.Fuzz(func(t *testing.T, file []byte) {
		if err := readAll(file); err != nil && !errors.Is(err, ErrFormat) {
			t.Errorf("%v is no ErrFormat", err)
		}
	})
}
