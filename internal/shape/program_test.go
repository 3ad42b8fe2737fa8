package shape

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rlhost runs where there is nothing but a kernel, so it loads no libraries; programs that do are plugins of it.
func TestShape_TheProgramLoadsNoLibraries(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", "../../cmd/rlhost").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, module+"pipeline") {
		t.Fatalf("%d packages, and none of them is pipeline", len(packages))
	}
	for _, name := range packages {
		if strings.HasPrefix(name, "github.com/ebitengine/purego") || strings.HasPrefix(name, module+"gpu/cuda") {
			t.Errorf("cmd/rlhost links %s", name)
		}
	}
}
