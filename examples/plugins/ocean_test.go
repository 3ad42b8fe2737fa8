package plugins_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/internal/testkit"
)

// puffer returns the folder of the headers that the ports of folder ocean-c need. Their licence is MIT.
func puffer(t *testing.T) string {
	t.Helper()
	p := plugins.Package{
		Name: "pufferlib", Version: "3.0.0", Archive: "pufferlib-3.0.0.tar.gz",
		SHA256: "7df3a3e3f5f894d78d2a1f5374097890aec01473183e748abefe4f3faa10eaa9",
		Files:  []string{"*/ocean/*.h", "*/include/*.h"},
	}
	dir, err := p.Dir()
	if err := errors.Join(err, p.Unpack()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Ports of PufferLib's environments through rl_ocean.h: each has at most 25 lines, and check finds what is the original's alone. It runs
// with RLHOST_LONG=1, for it fetches 60 MB: make test-ports.
func TestPorts_OfPufferLibPassTheirChecks(t *testing.T) {
	if os.Getenv("RLHOST_LONG") == "" {
		t.Skip("RLHOST_LONG is not set")
	}
	clang, headers, bin := testkit.Needs(t, "clang-19", "clang"), puffer(t), tools(t)
	ports, err := filepath.Glob("ocean-c/*.c")
	if err != nil || len(ports) < 8 {
		t.Fatalf("%d ports, %v", len(ports), err)
	}
	originals := map[string][]string{ // checks that the original fails, and why
		"snake":  {"D04"}, // c_reset leaves the cells between the walls as they are
		"target": {"D04"}, // c_reset leaves headings and speeds
	}
	for _, port := range ports {
		name := strings.TrimSuffix(filepath.Base(port), ".c")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(port)
			if err != nil {
				t.Fatal(err)
			}
			if lines := strings.Count(string(text), "\n"); lines > 25 {
				t.Errorf("%d lines", lines)
			}
			module := filepath.Join(t.TempDir(), name+".wasm")
			build := exec.Command(clang, "--target=wasm32-wasi", "-mexec-model=reactor", "-O3", "-msimd128", "-mbulk-memory", "-w",
				"-Wl,--stack-first,-z,stack-size=262144", "-I", "../../sdk/c", "-I", filepath.Join(headers, "pufferlib/ocean", name),
				"-I", filepath.Join(headers, "raylib-5.5_linux_amd64/include"), port, "-o", module)
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			out, _ := exec.Command(filepath.Join(bin, "rlhost"), "check", module).CombinedOutput()
			if !strings.Contains(string(out), " passed, ") {
				t.Fatalf("%s", out)
			}
			var failed []string
			for line := range strings.Lines(string(out)) {
				if rest, ok := strings.CutPrefix(line, " FAIL "); ok {
					failed = append(failed, strings.Fields(rest)[0])
				}
			}
			if !slices.Equal(failed, originals[name]) {
				t.Errorf("failed %v, the original fails %v\n%s", failed, originals[name], out)
			}
			if strings.Contains(string(out), "no episode ended") && name != "target" && name != "checkers" { // of the first they never do, of the other not by moves at random
				t.Errorf("%s", out)
			}
		})
	}
}

func TestPage_OfPortsShowsOne(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/porting.md")
	if err != nil {
		t.Fatal(err)
	}
	port, err := os.ReadFile("ocean-c/squared.c")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```c squared.c\n"+string(port)+"```\n") {
		t.Error("docs/how-to/porting.md shows another squared.c than ocean-c")
	}
}
