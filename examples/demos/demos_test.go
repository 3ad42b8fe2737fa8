package demos

import (
	"encoding/xml"
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

// The picture of the README is what the program prints: a session that is recorded again is well-formed, small and ends with what was learned.
func TestDemo_RecordsASession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, picture := filepath.Join(dir, "rlhost"), filepath.Join(dir, "recording.svg")
	testkit.Build(t, "../../cmd/rlhost", program)
	if out, err := exec.CommandContext(t.Context(), testkit.Needs(t, "python3"), "recording/record.py", program, "../../pipeline.toml", picture).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, path := range []string{picture, "../../docs/recording.svg"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var svg struct {
			Lines []string `xml:"text"`
		}
		if err := xml.Unmarshal(text, &svg); err != nil || len(text) > 8<<10 {
			t.Errorf("%s: %d bytes, %v", path, len(text), err)
		}
		said := strings.Join(svg.Lines, "\n")
		for _, want := range []string{"$ rlhost train", "target reached: mean return", "$ rlhost runs"} {
			if !strings.Contains(said, want) {
				t.Errorf("%s does not show %q:\n%s", path, want, said)
			}
		}
	}
}
