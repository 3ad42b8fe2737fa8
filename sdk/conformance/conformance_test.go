package conformance

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestConformance_ASecondHostRunsTheSet runs every case on a host that shares no line with ours.
func TestConformance_ASecondHostRunsTheSet(t *testing.T) {
	t.Parallel()
	python, err := filepath.Abs("../../.venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(python, "-c", "import numpy, wasmtime").CombinedOutput(); err != nil {
		t.Skipf("run make tools: %v %s", err, out)
	}
	if out, err := exec.Command(python, "-B", "run.py").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
