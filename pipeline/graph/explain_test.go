package graph

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var codePattern = regexp.MustCompile(`"([EW][0-9]{3})"`)

// Codes come from this package, from components and from runtimes; all of them are in string literals.
func TestExplain_EveryCodeHasAPage(t *testing.T) {
	var files []string
	for _, root := range []string{"../../core", "../../plugins", "../../pipeline", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".go") {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	codes := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range codePattern.FindAllStringSubmatch(string(src), -1) {
			codes[m[1]] = file
		}
	}
	if len(codes) < 30 {
		t.Fatalf("found only %d codes in the source: %v", len(codes), codes)
	}
	for code, file := range codes {
		page, ok := Explain(code)
		if !ok {
			t.Errorf("%s of %s has no page", code, file)
		} else if !strings.HasPrefix(page, code+" ") || !strings.Contains(page, "Fix: ") {
			t.Errorf("page of %s does not begin with it or has no fix:\n%s", code, page)
		}
	}
}

func TestExplain_TakesCodesAsPeopleTypeThem(t *testing.T) {
	for _, code := range []string{"E040", "e040", " E040 "} {
		if page, ok := Explain(code); !ok || !strings.HasPrefix(page, "E040 payloads differ\n") {
			t.Errorf("Explain(%q) = %q, %v", code, page, ok)
		}
	}
	for _, code := range []string{"", "E", "E999", "040", "payloads"} {
		if page, ok := Explain(code); ok {
			t.Errorf("Explain(%q) = %q, want nothing", code, page)
		}
	}
}
