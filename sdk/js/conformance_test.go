package js

import (
	"os/exec"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

// TestConformance_AHostInJavaScriptRunsTheSet runs every case in Node.
func TestConformance_AHostInJavaScriptRunsTheSet(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("Node is missing: apt-get install nodejs")
	}
	testkit.Reads(t, "*.js", "../../hostabi/conformance/*")
	if out, err := exec.Command("node", "conformance.js").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
