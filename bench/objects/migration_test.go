package objects

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

// migrated is what the programs of migration print, which read what another has written.
const migrated = `Hello World!
[array([0., 1., 2.]), 'two', {3}, (4, 'four'), None]
['two', None, (4, 'four')]
[0, 0, 0, 0] item 0
[2, 2, 2, 2] item 2
2
`

func TestMigration_SMOSProgramsWithRlhost(t *testing.T) {
	python, err := filepath.Abs("../../.venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(python); err != nil {
		t.Skip("no Python environment: make tools")
	}
	if out, err := exec.Command(python, "../../sdk/python/installed.py").CombinedOutput(); err != nil {
		t.Fatalf("the package in .venv is not the one of this checkout: run make tools\n%s", out)
	}
	program := filepath.Join(t.TempDir(), "rlhost")
	testkit.Build(t, "../../cmd/rlhost", program)
	run(t, python, "migration/with_rlhost.py", "RLHOST_PROGRAM="+program, "XDG_RUNTIME_DIR="+t.TempDir())
}

func TestMigration_SMOSProgramsThemselves(t *testing.T) {
	python, err := filepath.Abs("../../.cache/peers/smos/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(python); err != nil {
		t.Skip("bench/objects/install.sh installs SMOS, make test-peers runs this with it")
	}
	run(t, python, "migration/with_smos.py")
}

// run runs a program's three parts, each in a process, and compares what the last one prints.
func run(t *testing.T, python, script string, environment ...string) {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
	if err := listener.Close(); err != nil { // the port is free now
		t.Fatal(err)
	}
	part := func(name string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), python, script, name, port)
		c.Env = append(append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1"), environment...)
		c.Stderr = os.Stderr
		return c
	}
	server := part("serve")
	end, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() && lines.Text() != "ready" {
	}
	if out, err := part("write").Output(); err != nil {
		t.Fatalf("write: %v\n%s", err, out)
	}
	out, err := part("read").Output()
	if got := string(out); err != nil || !strings.HasSuffix(got, migrated) { // SMOS tells what it waits for, too
		t.Errorf("%v, it prints\n%s\nwant\n%s", err, got, migrated)
	}
	_ = end.Close() // it may have ended
	for lines.Scan() {
	}
	if err := server.Wait(); err != nil {
		t.Errorf("the server: %v", err)
	}
}
