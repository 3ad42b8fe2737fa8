package wrap

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

func TestDocs_TellOfEachWrapper(t *testing.T) {
	testkit.Documented(t, "../../docs/reference/environments.md", names()...)
}

func TestWrap_EachWrapperIsPutAroundAnEnvironment(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests []byte
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tests = append(tests, text...)
	}
	for _, name := range names() {
		if !bytes.Contains(tests, []byte(`{"`+name+`":`)) {
			t.Errorf("no test puts %s around an environment: it belongs into lists of wrap_test.go, which holds wrappers to the promises", name)
		}
	}
}
