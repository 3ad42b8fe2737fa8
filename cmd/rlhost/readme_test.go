package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
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
		return " --set run.stop.env_steps=4096 --set run.evaluation.episodes=3"
	case "bench":
		return " --seconds 0.02"
	case "eval":
		return " --episodes 5"
	}
	return ""
}

func TestReadme_TheFirstFiveMinutesRun(t *testing.T) {
	var script strings.Builder
	script.WriteString("symlink pipeline.toml -> $ROOT/pipeline.toml\nsymlink examples -> $ROOT/examples\n")
	commands := 0
	for line := range strings.Lines(section(t, "The first five minutes")) {
		command, isCommand := strings.CutPrefix(line, "    bin/")
		if !isCommand {
			continue
		}
		command, _, _ = strings.Cut(command, "#")
		command = strings.TrimSpace(command)
		fmt.Fprintf(&script, "exec %s%s\nstdout .\n", command, inBrief(command))
		commands++
	}
	if commands < 5 {
		t.Fatalf("found %d commands", commands)
	}
	script.WriteString("exists runs/cartpole/0001/metrics.jsonl\n")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "readme.txtar"), []byte(script.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, scripts(t, dir))
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
	want := ""
	for line := range strings.Lines(errOut.String()) {
		want += "    " + line
	}
	if !strings.Contains(readme, want) {
		t.Errorf("README.md does not show\n%s", want)
	}
}
