package modules

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rlhost/rlhost/core/files"
)

// A pipe without a writer is no recording: opening it would wait for ever.
func TestCheck_RefusesARecordThatIsNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "blocks.rec")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Check{Record: path}).messages(); !errors.Is(err, files.ErrNotRegular) {
		t.Errorf("%v", err)
	}
}
