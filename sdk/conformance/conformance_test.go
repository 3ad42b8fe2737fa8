package conformance

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

// TestConformance_ASecondHostRunsTheSets runs every case on hosts that share no line with ours.
func TestConformance_ASecondHostRunsTheSets(t *testing.T) {
	t.Parallel()
	python, err := filepath.Abs("../../.venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(python, "-c", "import numpy, wasmtime").CombinedOutput(); err != nil {
		t.Skipf("run make tools: %v %s", err, out)
	}
	testkit.Reads(t, "*.py", "../../docs/reference/env-abi.md", "../../docs/reference/component-abi.md", "../../hostabi/conformance/*", "../../hostabi/conformance/component/*")
	for _, set := range []string{"run.py", "run_components.py"} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			if out, err := exec.Command(python, "-B", set).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
