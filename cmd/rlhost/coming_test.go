package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/rlhost/rlhost/core/names"
)

// TestComingFrom_NamesKeys: every key that the page gives for one of another library is a key of a pipeline.
func TestComingFrom_NamesKeys(t *testing.T) {
	page, err := os.ReadFile("../../docs/start/coming-from.md")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut strings.Builder
	if code := run([]string{"show", "--expanded", filepath.Join(root, "pipeline.toml")}, &out, &errOut); code != exitOK {
		t.Fatalf("show: exit code %d\n%s", code, errOut.String())
	}
	var full map[string]any
	if _, err := toml.Decode(out.String(), &full); err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:run|train|policy|component)\\.[a-z_.]+)(?: = [^`]*)?`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 40 {
		t.Errorf("the page names %d keys, want its tables", len(named))
	}
	for _, m := range named {
		at := any(full)
		for word := range strings.SplitSeq(m[1], ".") {
			table, _ := at.(map[string]any)
			at = table[word]
		}
		if at == nil {
			t.Errorf("`%s` is no key of a pipeline", m[1])
		}
	}
}

// TestComingFrom_AgreesWithTheHelp: where an error about a word of another library names a key, the page names the same one.
func TestComingFrom_AgreesWithTheHelp(t *testing.T) {
	page, err := os.ReadFile("../../docs/start/coming-from.md")
	if err != nil {
		t.Fatal(err)
	}
	all := names.All()
	code := regexp.MustCompile("`([^`]+)`")
	compared := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		for _, word := range code.FindAllStringSubmatch(cells[1], -1) {
			keys := all[word[1]]
			if len(keys) == 0 {
				continue
			}
			compared++
			same := func(k names.Key) bool {
				return strings.Contains(cells[2], k.Name) || cells[2] == " the same, in `component.learner` "
			}
			if !slices.ContainsFunc(keys, same) {
				t.Errorf("%s: the page has%s, the help %v", word[1], cells[2], keys)
			}
		}
	}
	if compared < 30 {
		t.Errorf("%d words are compared", compared)
	}
}
