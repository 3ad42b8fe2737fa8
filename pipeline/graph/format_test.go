package graph_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

func TestFormat(t *testing.T) {
	files, err := filepath.Glob("testdata/format/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a := graphtest.ReadArchive(t, file)
			got, err := graph.Format("x.toml", []byte(a.At("x.toml").Data))
			if err != nil {
				got = []byte(err.Error() + "\n")
			}
			a.Golden(t, file, "want", string(got))
			if again, err2 := graph.Format("x.toml", got); err == nil && string(again) != string(got) {
				t.Errorf("formatted again:\n%s%v", again, err2)
			}
		})
	}
}

func TestFormat_ThePipelinesHereAreFormatted(t *testing.T) {
	files := []string{"../../pipeline.toml"}
	for _, pattern := range []string{"presets/*.toml", "../../examples/pipelines/*.toml"} {
		more, err := filepath.Glob(pattern)
		if err != nil || len(more) == 0 {
			t.Fatal(pattern, err)
		}
		files = append(files, more...)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := graph.Format(file, src); err != nil || string(got) != string(src) {
			t.Errorf("%s is not formatted (rlhost fmt %s): %v", file, file, err)
		}
	}
}

// FuzzFormat checks that what can be read can be formatted, says the same, and stays as it is when it is formatted again.
func FuzzFormat(f *testing.F) {
	graph.AddCorpus(f)
	f.Add("# a\n\n# b\n[ a . \"b c\" ]  # c\n\n\nd=[1, # one\n2,[3,\n4]#two\n,{x=1,y={}}]\r\n#e\n[[w]]\n#f")
	f.Add("a = \"\"\"\n#x\n\"\"\"\nb = '''\r\n'''\nc={\n a=1, # x\n b.c=2\n}\n")
	f.Fuzz(func(t *testing.T, text string) {
		once, err := graph.Format("x.toml", []byte(text))
		if err != nil {
			if strings.Contains(err.Error(), "cannot be formatted") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		twice, err := graph.Format("x.toml", once)
		if err != nil || string(twice) != string(once) {
			t.Fatalf("formatted %q\nonce:\n%s\ntwice (%v):\n%s", text, once, err, twice)
		}
	})
}
