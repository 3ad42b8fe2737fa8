package graph

import (
	"errors"
	"strings"
	"testing"
)

const sumA, sumB = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

func TestAddPlugin_ChangesNothingElse(t *testing.T) {
	cases := []struct{ name, file, want string }{
		{"new", "rlhost = 1\n# end", "rlhost = 1\n# end\n\n[plugin.shaper]\npath = \"./shaper\"\nsha256 = \"" + sumA + "\"\n"},
		{"without a sum", "[plugin.shaper] # mine\npath = \"./shaper\"\nargs = []\n[run]\n",
			"[plugin.shaper] # mine\nsha256 = \"" + sumA + "\"\npath = \"./shaper\"\nargs = []\n[run]\n"},
		{"at the end of the file", "[plugin.\"shaper\"]", "[plugin.\"shaper\"]\nsha256 = \"" + sumA + "\"\n"},
		{"with another sum", "[plugin.shaper]\npath = \"./shaper\"\nsha256 = \"" + sumB + "\" # of Monday\n",
			"[plugin.shaper]\npath = \"./shaper\"\nsha256 = \"" + sumA + "\" # of Monday\n"},
		{"in one line", "plugin = { shaper = { path = \"./shaper\", sha256 = '' } }\n",
			"plugin = { shaper = { path = \"./shaper\", sha256 = \"" + sumA + "\" } }\n"},
	}
	for _, c := range cases {
		got, err := AddPlugin("p.toml", []byte(c.file), "shaper", "./shaper", sumA)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", c.name, err, got, c.want)
		}
	}
}

func TestAddPlugin_RefusesWithThePlace(t *testing.T) {
	cases := []struct{ name, file, want string }{
		{"shaper", "[plugin.shaper]\npath = \"./other\"\n", "p.toml:2:8: error[E006]"},
		{"shaper", "plugin.shaper = { path = \"./shaper\" }\n", "p.toml:1:8: error[E005]"},
		{"shaper", "rlhost = \n", "p.toml:1:"},
		{"2nd", "", "cannot be a name"},
	}
	for _, c := range cases {
		got, err := AddPlugin("p.toml", []byte(c.file), c.name, "./shaper", sumA)
		var problems Problems
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &problems) && c.name == "shaper" {
			t.Errorf("AddPlugin to %q = %q, %v, want %s", c.file, got, err, c.want)
		}
	}
}

func FuzzAddPlugin(f *testing.F) {
	f.Add("[plugin.shaper]\npath = \"./shaper\"\n")
	f.Add("plugin = { shaper = { } }\n")
	f.Add("[plugin]\nshaper.path = \"./shaper\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := AddPlugin("p.toml", []byte(text), "shaper", "./shaper", sumA)
		if err != nil {
			return
		}
		var c Report
		root := c.read(newSource("p.toml", bom(string(got)), 0))
		if root == nil {
			t.Fatalf("%q became %q: %v", text, got, c.Sorted())
		}
		if sum, _ := root.at("plugin").at("shaper").at("sha256").text(); sum != sumA {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

func TestSetKeys_ChangesNothingElse(t *testing.T) {
	cases := []struct {
		name, file string
		sets       []string
		want       string
	}{
		{"a value", "[env.x] # mine\nuse = \"./a\" # of Monday\n", []string{`env.x.use = "./b"`}, "[env.x] # mine\nuse = \"./b\" # of Monday\n"},
		{"a key that it lacks", "[component.x]\nkind = \"y\"\n[run]\n", []string{`component.x.runtime = "wasm"`}, "[component.x]\nruntime = \"wasm\"\nkind = \"y\"\n[run]\n"},
		{"a table that it lacks", "[run]\nname = \"x\"", []string{`component.x.runtime = "process"`}, "[run]\nname = \"x\"\n\n[component.x]\nruntime = \"process\"\n"},
		{"without a key", "[component.x]\nplugin = \"y\" # z\nepochs = 3\n", []string{"component.x.plugin = ", "component.x.use = "}, "[component.x]\nepochs = 3\n"},
		{"a sum that it has", "[env.x]\nsha256 = \"a\"\n", []string{`env.x.sha256 = "b"`}, "[env.x]\nsha256 = \"b\"\n"},
		{"a sum that it lacks", "[env.x]\n", []string{`env.x.sha256 = "b"`}, "[env.x]\n"},
		{"in one line", "env = { x = { use = \"./a\" } }\n", []string{`env.x.use = "./b"`}, "env = { x = { use = \"./b\" } }\n"},
	}
	for _, c := range cases {
		got, err := SetKeys("p.toml", []byte(c.file), c.sets)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", c.name, err, got, c.want)
		}
	}
	for _, refused := range []struct{ file, set string }{
		{"env = { x = { use = \"./a\" } }\n", `env.x.wrap = []`},
		{"env = { x = { use = \"./a\" } }\n", "env.x.use = "},
		{"rlhost = \n", `env.x.use = "b"`},
	} {
		if got, err := SetKeys("p.toml", []byte(refused.file), []string{refused.set}); err == nil {
			t.Errorf("%s in %q: got %q", refused.set, refused.file, got)
		}
	}
}
