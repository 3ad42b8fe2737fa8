package pipeline

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
)

func TestRunDir_ReadsTheTableRunAlone(t *testing.T) {
	const head = "rlhost = 1\n[run]\nname = \"x\"\n"
	for _, c := range []struct{ name, text, want string }{
		{"given", head + `dir = "elsewhere"`, "elsewhere"},
		{"default", head, "runs"},
		{"nothing else needs to be right", head + "dir = \"elsewhere\"\n[plugin.p]\n[component.c]\nkind = 7\nplugin = \"q\"\n[nonsense]", "elsewhere"},
	} {
		if got, problems := graph.RunDir("f.toml", []byte(c.text)); got != c.want || len(problems) != 0 {
			t.Errorf("%s: %q, %v, want %q", c.name, got, problems, c.want)
		}
	}
	for _, c := range []struct{ name, text, want string }{
		{"no TOML", "run", "E001"},
		{"unknown key", head + "dri = \"x\"", "E002"},
		{"another type", head + "dir = 7", "E003"},
		{"no table", "rlhost = 1\nrun = 7", "E003"},
		{"no table run", "rlhost = 1", "E004"},
		{"empty", head + `dir = ""`, "E005"},
		{"twice", head + "dir = \"a\"\ndir = \"b\"", "E006"},
		{"of the future", strings.Replace(head, "1", "2", 1), "E007"},
	} {
		dir, problems := graph.RunDir("f.toml", []byte(c.text))
		if dir != "" || problems.Err() == nil || problems[0].Code != c.want {
			t.Errorf("%s: %q, %v, want %s", c.name, dir, problems, c.want)
		}
	}
}
