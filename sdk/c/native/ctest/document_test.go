package ctest

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// documents is a process that reports which texts are JSON documents, under sanitizers.
type documents struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startDocuments(t testing.TB) *documents {
	t.Helper()
	d := &documents{cmd: exec.Command(Build(t, Sanitized, "../testdata/interop.c"), "parse")}
	d.cmd.Stderr = os.Stderr
	var err error
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.out = bufio.NewReader(out)
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = d.in.Close()
		if err := d.cmd.Wait(); err != nil {
			t.Errorf("the reader of documents: %v", err)
		}
	})
	return d
}

func (d *documents) accepts(t testing.TB, doc []byte) bool {
	t.Helper()
	if _, err := d.in.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(doc))), doc...)); err != nil {
		t.Fatal(err)
	}
	answer, err := d.out.ReadByte()
	if err != nil {
		t.Fatalf("document %q: %v", doc, err)
	}
	return answer != 0
}

func FuzzDocument_IsWhatGoTakesForOne(f *testing.F) {
	for _, doc := range []string{
		`{"arena":{"call":1,"id":9,"name":"x\u00e4","blocks":4,"block_bytes":100,"schema":{"columns":[{"shape":[]}]}}}`,
		`[1,-2.5e+3,true,false,null,"\ud83d\ude00\ud800\n"]`, `{"a":{}}`, `{`, `"\x"`, `01`, ` 1 `, `{"a":1,}`, "\"\x00\"", "\"\xff\"",
		strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
		strings.Repeat(`{"a":[`, 5000) + strings.Repeat("]}", 5000), `[{"a":[}]`, `[{]`, `[,1]`, `{"a":1 "b":2}`, `[] ]`, `{"a",1}`, `[1}`, "1 2", "tru", "-", "",
	} {
		f.Add([]byte(doc))
	}
	d := startDocuments(f)
	f.Fuzz(func(t *testing.T, doc []byte) {
		if len(doc) > 1<<20 {
			return
		}
		got, want := d.accepts(t, doc), json.Valid(doc)
		if got != want {
			t.Errorf("document %q: accepted %v, want %v", doc, got, want)
		}
	})
}
