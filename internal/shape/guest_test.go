package shape

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// An environment's guest is copied and swapped during a run, and everything it links is paid for each time.
func TestShape_GuestsLinkNoFmtAndNoOs(t *testing.T) {
	t.Parallel()
	list := exec.Command("go", "list", "-deps", "../../sdk/wasm")
	list.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, module+"hostabi") {
		t.Fatalf("%d packages, and none of them is hostabi", len(packages))
	}
	for _, name := range []string{"fmt", "os", "time", "log/slog"} {
		if slices.Contains(packages, name) {
			t.Errorf("guests link %s: go list -deps ./sdk/wasm, or keep what needs it to files with the constraint !wasip1", name)
		}
	}
}
