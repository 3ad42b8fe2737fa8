package main

import (
	"os"
	"strings"
	"testing"
)

// section returns the lines of a section of README.md.
func section(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("README.md has no section %q", heading)
	}
	body, _, _ := strings.Cut(rest, "\n## ")
	return body
}

// inBrief are flags that keep a command short here: it is the words of README.md that are tested, not the policy.
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

func TestReadme_ShowsTheErrorThatIsPrinted(t *testing.T) {
	file, err := os.ReadFile("../../pipeline.toml")
	if err != nil {
		t.Fatal(err)
	}
	readme := section(t, "The first five minutes")
	t.Chdir(t.TempDir())
	wrong := strings.Replace(string(file), `env = "cartpole"`, `env = "cart_pole"`, 1)
	if err := os.WriteFile("pipeline.toml", []byte(wrong), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errOut strings.Builder
	if code := run([]string{"validate"}, &out, &errOut); code != exitConfig {
		t.Errorf("exit code %d, want %d", code, exitConfig)
	}
	if want := "```text\n" + errOut.String() + "```\n"; !strings.Contains(readme, want) {
		t.Errorf("README.md does not show\n%s", want)
	}
}
