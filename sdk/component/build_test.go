package component_test

import (
	"os"
	"os/exec"
	"testing"
)

// The interface, and components that are written against it, build for the sandbox too.
func TestPackage_BuildsForWasm(t *testing.T) {
	c := exec.Command("go", "build", ".", "../sdktest/scribe", "../../examples/plugins/process-go/shaper")
	c.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
