package demos

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

// The scripts run unchanged, with an environment that costs nothing, so that they end soon.
func TestDemo_MendsTheRewardInThreeWays(t *testing.T) {
	if testing.Short() {
		t.Skip("it trains three times")
	}
	for _, tool := range []string{"bash", "python3"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("the scripts want ", tool)
		}
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "rlhost")
	testkit.Build(t, "../../cmd/rlhost", program)
	cmd := exec.CommandContext(t.Context(), "hot-swap/run.sh", filepath.Join(dir, "out"))
	cmd.Env = append(os.Environ(), "RLHOST="+program, "NOTICED=60000",
		"SETTINGS=env.pole.args.work=2000 run.stop.env_steps=200000 run.evaluation.episodes=10")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	for _, line := range strings.Split(string(out), "\n") {
		fields := strings.Fields(line)
		if len(fields) > 3 && fields[0] == "swap" && fields[3] != "0" {
			t.Errorf("the swap lost env steps: %s", line)
		}
	}
	picture, err := os.ReadFile(filepath.Join(dir, "out", "picture.svg"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(picture), "<polyline"); n != 3 {
		t.Errorf("the picture has %d curves, want 3", n)
	}
}
