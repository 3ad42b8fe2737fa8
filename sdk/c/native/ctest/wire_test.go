package ctest

import (
	"os"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/shm"
)

// listener is a plugin in C that reads its wire, under sanitizers.
type listener struct {
	socket *shm.Socket
	peer   *peer
	file   *os.File // attached to every second frame
	frames int
}

func startListener(t testing.TB) *listener {
	t.Helper()
	socket, theirs, err := shm.Socketpair()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	file, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{socket: socket, file: file}
	l.peer = start(t, Build(t, Sanitized, "../testdata/interop.c"),
		[]int{int(theirs.Fd()), newMessages(t).FD(), newMessages(t).FD()}, "wire")
	t.Cleanup(func() {
		_ = socket.Close()
		_ = file.Close()
		if l.peer.cmd.ProcessState == nil {
			l.peer.wait(t) // it ends itself, without an error
		}
	})
	return l
}

// hears sends a frame, then another that the plugin answers.
func (l *listener) hears(t testing.TB, doc []byte) {
	t.Helper()
	var files []int
	if l.frames++; l.frames%2 == 0 {
		files = []int{int(l.file.Fd())}
	}
	if err := l.socket.Send(doc, files...); err != nil {
		t.Fatalf("frame %q: %v", doc, err)
	}
	if err := l.socket.Send([]byte(`{"ping":1}`)); err != nil {
		t.Fatalf("after frame %q: %v", doc, err)
	}
	if err := l.socket.SetReceiveDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 1<<17)
	if n, _, err := l.socket.Receive(buf); err != nil || string(buf[:n]) != `{"ping":1}` {
		t.Fatalf("after frame %q: %q, %v", doc, buf[:n], err)
	}
}

func FuzzWire_NoFrameHarmsThePlugin(f *testing.F) {
	for _, doc := range []string{
		`{"arena":{"call":0,"id":9,"name":"x","blocks":4,"block_bytes":100,"read_only":true,"schema":{"columns":[{"name":"a"}]}}}`,
		`{"arena":{"call":1,"id":300,"blocks":-1,"block_bytes":1e3}}`, `{"removed":9}`, `{"removed":-1}`, `{"removed":99999999999999999999}`,
		`{"failed":{"call":1,"reason":"\u0000"}}`, `{"failed":{}}`, `{"state":{"call":1,"bytes":10}}`, `{"state":{"call":1,"bytes":-1}}`,
		`{"file":{"number":0,"bytes":4096}}`, `{}`, `[]`, `null`, `{"arena":null,"removed":null}`, "\x00", `{`,
	} {
		f.Add([]byte(doc))
	}
	l := startListener(f)
	f.Fuzz(func(t *testing.T, doc []byte) {
		if len(doc) > 0 && len(doc) <= 1<<17 && string(doc) != `{"ping":1}` {
			l.hears(t, doc)
		}
	})
}

func TestWire_AnEndOfTheHostIsTheEndOfThePlugin(t *testing.T) {
	l := startListener(t)
	l.hears(t, []byte(`{}`))
	if err := l.socket.Close(); err != nil {
		t.Fatal(err)
	}
	l.peer.wait(t)
}
