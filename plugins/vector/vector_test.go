package vector

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/ring"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// caller is the other program.
type caller struct {
	t        *testing.T
	requests *ring.SPSC
	replies  *ring.SPSC
	wire     *shm.Socket
	resets   *shm.Segment
	ended    chan error
}

func begin(t *testing.T, envs, resets int) *caller {
	t.Helper()
	return beginWith(t, Options{Envs: envs, Autoreset: hostabi.SameStep}, plugintest.Script{}, resets)
}

func beginWith(t *testing.T, o Options, script plugintest.Script, resets int) *caller {
	t.Helper()
	c := &caller{t: t, ended: make(chan error, 1)}
	var theirs *os.File
	var errs [4]error
	c.requests, errs[0] = ring.New("requests", 64)
	c.replies, errs[1] = ring.New("replies", 64)
	c.wire, theirs, errs[2] = shm.Socketpair()
	c.resets, errs[3] = shm.Create("resets", resets)
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	dup := func(fd int) int {
		again, err := shm.Dup(fd)
		if err != nil {
			t.Fatal(err)
		}
		return again
	}
	f := Files{Requests: dup(c.requests.FD()), Replies: dup(c.replies.FD()), Wire: dup(int(theirs.Fd())), Resets: dup(c.resets.FD())}
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		c.ended <- Serve(ctx, plugintest.New(script), o, f)
	}()
	t.Cleanup(func() {
		cancel()
		for _, err := range []error{c.requests.Close(), c.replies.Close(), c.wire.Close(), c.resets.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return c
}

// document receives one and reads it into a value.
func (c *caller) document(into any) []*os.File {
	c.t.Helper()
	buf := make([]byte, 1<<16)
	n, files, err := c.wire.Receive(buf)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := json.Unmarshal(buf[:n], into); err != nil {
		c.t.Fatal(err)
	}
	return files
}

func (c *caller) ask(m hostabi.Message) hostabi.Message {
	c.t.Helper()
	var in [1]hostabi.Message
	if c.requests.Put([]hostabi.Message{m}) != 1 {
		c.t.Fatal("no room for a request")
	}
	for end := time.Now().Add(10 * time.Second); c.replies.Get(in[:]) == 0; c.replies.Wait(time.Second) {
		if time.Now().After(end) {
			c.t.Fatal("no answer")
		}
	}
	return in[0]
}

func TestServe_StepsInTheBlockThatItShares(t *testing.T) {
	const envs = 3
	c := begin(t, envs, 9*envs)
	var ready Ready
	files := c.document(&ready)
	if len(files) != 1 || ready.Columns == nil || len(ready.Describe) == 0 || ready.Hash == "" {
		t.Fatalf("%d files, %+v", len(files), ready)
	}
	block, err := shm.Open(int(files[0].Fd()), shm.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := block.Close(); err != nil {
			t.Error(err)
		}
	})
	clear(block.Bytes()[ready.Offset:][:ready.Bytes]) // actions of 0 in every row
	for i := range envs {
		binary.LittleEndian.PutUint64(c.resets.Bytes()[8*i:], uint64(7+i))
	}
	if m := c.ask(hostabi.Message{Slot: hostabi.LinkEnvReset, Kind: hostabi.LinkEnvSeeds}); m.Kind != 0 || m.T != uint32(ready.Row) {
		t.Fatalf("reset: %+v", m)
	}
	var before []byte
	for range 100 { // beyond the last row
		m := c.ask(hostabi.Message{Slot: hostabi.LinkEnvStep})
		if m.Kind != 0 || m.Slot != hostabi.LinkEnvReply || m.Split != m.T-1 && m.T != 0 {
			t.Fatalf("step: %+v", m)
		}
		now := bytes.Clone(block.Bytes()[ready.Offset:][:ready.Bytes])
		if bytes.Equal(now, before) {
			t.Fatal("a step has written nothing")
		}
		before = now
	}
	if m := c.ask(hostabi.Message{Slot: 7}); m.Kind == 0 {
		t.Error("an unknown call is answered")
	}
	var failed Failed
	if c.document(&failed); !strings.Contains(failed.Reason, "no call 0x7") {
		t.Errorf("reason %q", failed.Reason)
	}
	if m := c.ask(hostabi.Message{Slot: Render}); m.Kind == 0 {
		t.Errorf("a picture of an environment that draws none: %+v", m)
	}
	if c.document(&failed); !strings.Contains(failed.Reason, "draws no pictures in colour") {
		t.Errorf("reason %q", failed.Reason)
	}
	question, err := shm.Create("question", 8)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []struct{ document, want string }{
		{`{"bytes":8}`, "have no attributes or methods"},
		{`{"bytes":9999}`, "EOF"},
		{`{"bytes":-1}`, "want up to"},
	} {
		if err := c.wire.Send([]byte(q.document), question.FD()); err != nil {
			t.Fatal(err)
		}
		if m := c.ask(hostabi.Message{Slot: Ask}); m.Kind == 0 {
			t.Errorf("question %s is answered: %+v", q.document, m)
		}
		if c.document(&failed); !strings.Contains(failed.Reason, q.want) {
			t.Errorf("question %s: reason %q, want %q", q.document, failed.Reason, q.want)
		}
	}
	if err := question.Close(); err != nil {
		t.Error(err)
	}
	c.requests.Shut()
	if err := <-c.ended; err != nil {
		t.Error(err)
	}
}

func TestServe_RefusesFilesThatAreTooSmall(t *testing.T) {
	c := begin(t, 1000, 9)
	if err := <-c.ended; err == nil || !strings.Contains(err.Error(), "want 9000 for 1000 environments") {
		t.Errorf("%v", err)
	}
}
