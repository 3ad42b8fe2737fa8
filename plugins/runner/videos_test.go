package runner

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rlhost/rlhost/plugins/runner/tensorboard"
)

// Each video is in the file for TensorBoard once, also where a later process continues the run, and other files are not.
func TestEvents_HaveEachVideoOnce(t *testing.T) {
	dir := t.TempDir()
	now := time.Unix(1_000_000, 0)
	make := func(name string, content string) {
		t.Helper()
		path := filepath.Join(dir, videoFolder, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Minute)
		if err := os.Chtimes(filepath.Dir(path), now, now); err != nil {
			t.Fatal(err)
		}
	}
	log := metricsLogs[logTensorBoard](dir)
	write := func(step uint64) {
		t.Helper()
		if err := log.write(now.Add(time.Hour), step, []metric{{"a", 1}}); err != nil {
			t.Fatal(err)
		}
	}
	write(1)
	if err := os.Mkdir(filepath.Join(dir, videoFolder), 0o755); err != nil {
		t.Fatal(err)
	}
	make("000000000002.gif", "GIF89a\x05\x00\x03\x00one")
	make(".film-123.gif", "GIF89a\x05\x00\x03\x00half")
	make("notes.txt", "GIF89a\x05\x00\x03\x00text")
	make("000000000003.gif", "GIF")
	write(2)
	write(3)
	make("000000000004.gif", "GIF89a\x05\x00\x03\x00two")
	write(4)
	if err := log.close(); err != nil {
		t.Fatal(err)
	}
	log = metricsLogs[logTensorBoard](dir)
	write(5)
	make("000000000006.gif", "GIF89a\x05\x00\x03\x00three")
	if err := log.close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, EventsFile))
	if err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]int{"one": 1, "two": 1, "three": 1, "half": 0, "text": 0} {
		if n := bytes.Count(data, []byte("GIF89a\x05\x00\x03\x00"+content)); n != want {
			t.Errorf("%s is there %d times, want %d", content, n, want)
		}
	}
	if whole, err := tensorboard.Whole(bytes.NewReader(data)); err != nil || whole != int64(len(data)) {
		t.Errorf("%d of %d bytes are whole records: %v", whole, len(data), err)
	}
}
