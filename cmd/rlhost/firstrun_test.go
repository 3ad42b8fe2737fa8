package main

import (
	"os"
	"strings"
	"testing"
)

// inBrief are flags that keep a command short here: it is the words of the pages that are tested, not the policy.
func inBrief(command string) string {
	switch strings.Fields(command)[1] {
	case "train":
		if strings.Contains(command, "--require") { // the required return must be learned
			return " --set run.stop.return=475 --set run.stop.env_steps=500_000"
		}
		return " --set run.stop.env_steps=4096 --set run.evaluation.episodes=3"
	case "bench":
		return " --seconds 0.02"
	case "eval":
		return " --episodes 5"
	}
	return ""
}

// TestFirstRun_ShowsWhatIsThere: the page shows the pipeline of the repository, and the error that a mistake in it gives.
func TestFirstRun_ShowsWhatIsThere(t *testing.T) {
	file, err := os.ReadFile("../../pipeline.toml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/start/first-run.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	wrong := strings.Replace(string(file), `env = "cartpole"`, `env = "cart_pole"`, 1)
	if err := os.WriteFile("pipeline.toml", []byte(wrong), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errOut strings.Builder
	if code := run([]string{"validate"}, &out, &errOut); code != exitConfig {
		t.Errorf("exit code %d, want %d", code, exitConfig)
	}
	for _, want := range []string{"```toml pipeline.toml\n" + string(file) + "```\n", "```text\n" + errOut.String() + "```\n"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/start/first-run.md does not show\n%s", want)
		}
	}
}
