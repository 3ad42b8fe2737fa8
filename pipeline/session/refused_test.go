package session

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

// A running job cannot become a pipeline that no training could begin with: a reload and a scaling are refused with the same code as the file.
func TestChange_IsRefusedWithTheCodeOfTheFile(t *testing.T) {
	r := begin(t)
	r.learns()
	path, err := filepath.Abs("pipeline.toml")
	if err != nil {
		t.Fatal(err)
	}
	before := r.pipeline.Graph().Expanded()
	for _, c := range []struct {
		code, more string
	}{
		{"E043", "[component.spare]\nkind = \"learner\"\npolicy = \"main\"\ncount = 2\n"},
		{"E043", "[component.spare]\nkind = \"learner\"\npolicy = \"main\"\n"},
		{"E088", "--set component.rollout.shaped_rewards=true"},
		{"E088", "[component.other]\nkind = \"rollout\"\nenv = \"cartpole\"\n"},
		{"E043", "--set component.learner.count=2"},
	} {
		var sets []string
		source := file + c.more
		if set, ok := strings.CutPrefix(c.more, "--set "); ok {
			source, sets = file, []string{set}
		}
		_, problems := graphtest.Parse(path, []byte(source), graph.ParseOptions{Parts: r.commands.job.Parts, Sets: sets})
		if !strings.Contains(problems.String(), "error["+c.code+"]") {
			t.Errorf("%q: the file has\n%s\nwant %s", c.more, problems, c.code)
		}
		var e *control.Error
		err := r.do(t.Context(), control.VerbReload, control.ReloadRequest{File: path, Source: source, Sets: sets}, nil, nil)
		if !errors.As(err, &e) || !strings.Contains(e.Problems, "error["+c.code+"]") || e.Exit != int(Config) {
			t.Errorf("reload %v: %v, want %s", c.more, err, c.code)
		}
	}
	err = r.do(t.Context(), control.VerbScale, control.ScaleRequest{Components: map[string]int{"learner": 2}}, nil, nil)
	if code(err) != "E043" {
		t.Errorf("scale learner=2: %v, want E043", err)
	}
	if r.pipeline.Graph().Expanded() != before {
		t.Error("something has changed")
	}
	r.learns()
}
