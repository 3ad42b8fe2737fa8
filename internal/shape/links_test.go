package shape

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	pageLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	htmlID   = regexp.MustCompile(`id="([^"]+)"`)
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	noAnchor = regexp.MustCompile(`[^\pL\pN_\- ]`)
)

// TestShape_LinksOfPagesLeadSomewhere: a link of a page leads to a file that is there, and to a heading of it.
func TestShape_LinksOfPagesLeadSomewhere(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	anchors := map[string]map[string]bool{}
	for _, page := range pagesOf(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range unfenced(string(text)) {
			for _, m := range pageLink.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, "`"), -1) {
				if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
					continue
				}
				path, anchor, _ := strings.Cut(m[1], "#")
				file := filepath.Join(root, page)
				if path != "" {
					file = filepath.Join(filepath.Dir(file), path)
				}
				if _, err := os.Stat(file); err != nil {
					t.Errorf("%s:%d: %s is not there", page, i+1, m[1])
					continue
				}
				if anchor == "" || filepath.Ext(file) != ".md" {
					continue
				}
				if anchors[file] == nil {
					anchors[file] = anchorsOf(t, file)
				}
				if !anchors[file][anchor] {
					t.Errorf("%s:%d: %s has no heading #%s", page, i+1, m[1], anchor)
				}
			}
		}
	}
}

// unfenced returns the lines of a page; lines of fenced blocks are empty.
func unfenced(text string) []string {
	lines, fenced := strings.Split(text, "\n"), false
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimLeft(line, "> "), "```")
		if fence || fenced {
			lines[i] = ""
		}
		fenced = fenced != fence
	}
	return lines
}

// anchorsOf returns the anchors of a page's headings, as GitHub makes them, and its HTML identifiers.
func anchorsOf(t *testing.T, file string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]bool{}
	for _, line := range unfenced(string(text)) {
		if title, ok := strings.CutPrefix(line, "#"); ok {
			title = linkText.ReplaceAllString(strings.TrimSpace(strings.TrimLeft(title, "#")), "$1")
			set[strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(title), ""), " ", "-")] = true
		}
		for _, m := range htmlID.FindAllStringSubmatch(line, -1) {
			set[m[1]] = true
		}
	}
	return set
}
