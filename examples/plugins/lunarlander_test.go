package plugins_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/internal/testkit"
)

// TestPorts_LunarLanderHasGymnasiumsBits records Gymnasium on this machine, and flies the same in the sources of the port with the same C
// library: whatever differs is an error of the port, for nothing is rounded otherwise.
func TestPorts_LunarLanderHasGymnasiumsBits(t *testing.T) {
	if os.Getenv("RLHOST_LONG") == "" {
		t.Skip("RLHOST_LONG is not set")
	}
	cc, dir := testkit.Needs(t, "c++", "g++", "clang++"), t.TempDir()
	record := exec.Command(filepath.Join(root(t), ".venv/bin/python"), "golden/record_lunarlander.py", dir)
	if out, err := record.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program := filepath.Join(dir, "fly")
	line := append([]string{"-O2", "-std=c++20", "-ffp-contract=off", "-I", "../../sdk/c"}, fetched(t, "lunarlander-cpp")...)
	if out, err := exec.Command(cc, append(line, "testdata/fly_lunarlander.cpp", "-o", program, "-lm")...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, args := range [][]string{{"lunarlander.trace"}, {"lunarlandercontinuous.trace", "continuous"}} {
		args[0] = filepath.Join(dir, args[0])
		out, err := exec.Command(program, args...).CombinedOutput()
		if err != nil || !regexp.MustCompile(`^\d{4} steps, 0 differ\n$`).Match(out) {
			t.Errorf("%s: %v, %s", filepath.Base(args[0]), err, out)
		}
		t.Logf("%s: %s", filepath.Base(args[0]), out)
	}
}

// fetched returns the flags of a compiler for a guest whose build fetches sources: where they are, and where those in front of them are.
func fetched(t *testing.T, folder string) []string {
	t.Helper()
	for _, g := range plugins.Guests() {
		if g.Folder() != folder || g.Package == nil {
			continue
		}
		dir, err := g.Package.Dir()
		if err == nil {
			err = g.Package.Unpack()
		}
		if err != nil {
			t.Skip(fmt.Sprint(err))
		}
		return []string{"-I", folder, "-isystem", dir}
	}
	return nil
}
