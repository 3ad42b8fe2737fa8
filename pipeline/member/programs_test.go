package member

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// A program runs where the host's owner allows it, if it is the run's; each refusal says what to do.
func TestConsent_IsForOneProgram(t *testing.T) {
	dir := t.TempDir()
	script, beside := filepath.Join(dir, "own.py"), filepath.Join(dir, "more.py")
	if err := errors.Join(os.WriteFile(script, []byte("a"), 0o600), os.WriteFile(beside, []byte("b"), 0o600)); err != nil {
		t.Fatal(err)
	}
	own := graph.DefaultPlugin()
	own.Name, own.Path, own.Interpreter = "own", script, []string{"python3", "-u"}
	with := func(change func(*graph.PluginTable)) graph.PluginTable {
		t := own
		change(&t)
		return t
	}
	python := graph.DefaultPlugin()
	python.Path, python.Args = "python3", []string{"-m", "rlhost.gymnasium"}
	parts := &graph.Parts{EnvPlugins: map[string]graph.PluginTable{"gymnasium": python}}
	sum, digests := digest([]byte("a")), map[string]string{"own": own.Digest(""), "gone": "x"}
	all, one := Programs{All: true}, Programs{SHA256: []string{digest([]byte("other")), sum}}
	for _, c := range []struct {
		what     string
		table    graph.PluginTable
		programs Programs
		says     string
	}{
		{"all", own, all, ""},
		{"this one", own, one, ""},
		{"none", own, Programs{}, "--allow sha256:" + sum},
		{"another one", own, Programs{SHA256: one.SHA256[:1]}, "--allow sha256:" + sum},
		{"not there", with(func(t *graph.PluginTable) { t.Path = script + "x" }), all, "not on this host"},
		{"a name that PATH lacks", with(func(t *graph.PluginTable) { t.Path = "no-such-program" }), all, "not on this host"},
		{"not named by the run", with(func(t *graph.PluginTable) { t.Name = "more" }), all, "has not said which"},
		{"another on the run's host", with(func(t *graph.PluginTable) { t.Name = "gone" }), all, "another one on this host"},
		{"an interpreter of the run's", with(func(t *graph.PluginTable) { t.Interpreter = []string{"sh", "-c", "true"} }), one, "leave interpreter out"},
		{"the same where all are allowed", with(func(t *graph.PluginTable) { t.Interpreter = []string{"sh"} }), all, ""},
		{"Python", with(func(t *graph.PluginTable) { *t = python; t.Name = "gymnasium" }), one, "--allow-native"},
		{"Python where all are allowed", with(func(t *graph.PluginTable) { *t = python; t.Name = "gymnasium" }), all, ""},
		{"this program itself", graph.DefaultPlugin(), Programs{}, ""},
	} {
		consent := consent{parts, c.programs, &sent{programs: digests}}
		got, err := consent.program(&c.table)
		var e *control.Error
		switch {
		case c.says == "" && (err != nil || got.Path != c.table.Path || got.Path == script && got.SHA256 != sum):
			t.Errorf("%s: %+v, %v", c.what, got, err)
		case c.says != "" && (!errors.As(err, &e) || e.Code != CodeProgram || !strings.Contains(e.Reason+e.Help, c.says)):
			t.Errorf("%s: %v, want %q", c.what, err, c.says)
		}
	}
	if err := os.WriteFile(beside, []byte("c"), 0o600); err != nil {
		t.Fatal(err)
	}
	consent := consent{parts, one, &sent{programs: digests}}
	if _, err := consent.program(&own); err == nil || !strings.Contains(err.Error(), "script of Python next to it") {
		t.Errorf("a script next to it has changed: %v", err)
	}
}
