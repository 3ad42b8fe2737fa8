package graph

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tomlCorpus is TOML in all its forms.
var tomlCorpus = []string{
	"", "\n\n", "# only a comment", "a=1", "a = 1 # comment\r\nb = 2\r\n", "\ufeffa = 1",
	"a.b.c = 1\na.b.d = 2\n\"a\".e = 3\n", "[a]\nb.c = 1\n[a.d]\ne = 1\n[f.g]\n[f]\nh = 1\n",
	"[[a]]\nb = 1\n[[a]]\nb = 2\n[a.c]\nd = 3\n[[a.e]]\nf = 1\n[[a.e]]\n",
	"a = { b = 1, c = { d = [1, 2] }, e.f = 2 }\n", "a = {}\nb = []\nc = [{}, {}]\nd = [[], [[]]]\n",
	"a = [\n  1, # one\n  2,\n  # three\n  3,\n]\n", "a = [ { b = 1 }, { b = 2, c.d = 3 } ]\n",
	"a = { b = 1,\n  c = 2, # comment\n}\n", "a = \"x\\\"y#\"\nb = 'x\\'\nc = \"\"\nd = ''\n",
	"a = \"\"\"\nx # no comment\n[no.table]\n\\\"\"\" \"\" \"\"\"\"\"\nb = 1\n", "a = '''x\n'''''\nb = 1\n",
	"a = \"\"\"x\\\n   y\"\"\" # c\n\"quoted key\" = 1\n'lit.key' = 2\n\"esc\\u00e9\\x41\\t\" = 3\n\"\" = 4\n",
	"a = 1979-05-27 07:32:00Z # date\nb = 07:32:00\nc = 1979-05-27\nd = [1979-05-27 07:32:00, 1979-05-28]\n",
	"a = +1_000\nb = 0xff\nc = 1e-3\nd = -inf\ne = nan\nf = true\n", "[ a . \"b\" ]\n c = 1 \n[[ d . e ]]\n\tf = 2\n",
	"a = [[1, 2], [\"x\", \"y]\"], [{ z = \"}\" }]]", "é = 1", "a = 1\na = 2", "[a]\n[a]", "a = {b = 1, b = 2}",
	"a = [{b = {c = 1}}]\n[x]\ny = [{b = {c = 1}}]\n", "a.b = {c.d = 1}\n[a.e]\n", "a = {b.c = 1, b.d = 2}\n",
}

func addCorpus(f *testing.F) {
	for _, text := range tomlCorpus {
		f.Add(text)
	}
	for _, pattern := range []string{"../testdata/errors/*.txtar", "presets/*.toml", "../../examples/pipelines/*.toml", "../../pipeline.toml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatal(pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			_, src, ok := strings.Cut(string(text), "-- pipeline.toml --\n")
			if !ok {
				src = string(text)
			}
			src, _, _ = strings.Cut(src, "\n-- ")
			f.Add(src)
		}
	}
}

// FuzzIndex compares the scanner with the decoder: in any text that the decoder accepts, the scanner finds the same
// keys in the same order and tree, each at its place in the text.
func FuzzIndex(f *testing.F) {
	addCorpus(f)
	f.Fuzz(func(t *testing.T, text string) {
		text = bom(text)
		s, scanErr := scan(newSource("fuzz.toml", text, 0))
		var values map[string]any
		md, err := decode(text, &values)
		if err != nil {
			return // of broken text the scanner only has to return
		}
		if scanErr != nil {
			t.Fatalf("scan: %v", scanErr)
		}
		if len(s.dups) > 0 {
			t.Errorf("duplicates %v in text that the decoder accepts", s.dups)
		}
		if err := s.root.attach(values); err != nil {
			t.Errorf("attach: %v", err)
		}
		keys := md.Keys()
		if len(keys) != len(s.entries) {
			t.Fatalf("%d keys, decoder has %d: %v", len(s.entries), len(keys), keys)
		}
		for i, e := range s.entries {
			if !slices.Equal([]string(keys[i]), e.path) {
				t.Errorf("key %d is %q, decoder has %q", i, e.path, keys[i])
			}
			checkPlace(t, text, e)
		}
	})
}

// checkPlace checks that the key of an entry is at its place.
func checkPlace(t *testing.T, text string, e entry) {
	t.Helper()
	k := e.node.key
	if k.off < 0 || k.end > len(text) || k.off >= k.end {
		t.Fatalf("key %q lies at %d to %d of %d bytes", e.path, k.off, k.end, len(text))
	}
	c := &scanner{src: k.src, s: text[:k.end], i: k.off}
	if part, err := c.keyPart(); err != nil || part != e.path[len(e.path)-1] || c.i != k.end {
		t.Errorf("key %q stands at %q", e.path, text[k.off:k.end])
	}
	if v := e.node.val; v.off < 0 || v.end > len(text) || v.off >= v.end {
		t.Errorf("value of %q lies at %d to %d of %d bytes", e.path, v.off, v.end, len(text))
	}
}

func TestScan_PlacesOfKeysAndValues(t *testing.T) {
	const text = "é = 1\n[a.\"b c\"]\r\n  x.y = \"two\"  # note\r\nz = [1,\n  \"three\"]\n[[w]]\nq = { k = \"é\", l = 4 }\n"
	src := newSource("x.toml", strings.Replace(text, "é = 1", "\"é\" = 1", 1), 0)
	var c Report
	root := c.read(src)
	if root == nil {
		t.Fatal(Problems(c.list))
	}
	w := root.at("w").items[0]
	b := root.at("a").at("b c")
	cases := []struct {
		name                string
		at                  Span
		line, column, width int
		text                string
	}{
		{"quoted key", root.at("é").key, 1, 1, 3, `"é"`},
		{"value behind a wide letter", root.at("é").val, 1, 7, 1, "1"},
		{"header", b.key, 2, 4, 5, `"b c"`},
		{"dotted key", b.at("x").at("y").key, 3, 5, 1, "y"},
		{"string", b.at("x").at("y").val, 3, 9, 5, `"two"`},
		{"list over two lines", b.at("z").val, 4, 5, 3, "[1,\n  \"three\"]"},
		{"element of a list", b.at("z").items[1].val, 5, 3, 7, `"three"`},
		{"header of a table in a list", w.key, 6, 3, 1, "w"},
		{"inline key", w.at("q").at("l").key, 7, 16, 1, "l"},
		{"inline value", w.at("q").at("l").val, 7, 20, 1, "4"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			line, column := tc.at.src.place(tc.at.off)
			got := src.text[tc.at.off:tc.at.end]
			if line != tc.line || column != tc.column || tc.at.width() != tc.width || got != tc.text {
				t.Errorf("%q at %d:%d, %d wide; want %q at %d:%d, %d wide",
					got, line, column, tc.at.width(), tc.text, tc.line, tc.column, tc.width)
			}
		})
	}
}
