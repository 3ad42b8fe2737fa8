package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rlhost/rlhost/internal/markdown"
)

// shelves are the folders of pages, in the order in which a reader needs them.
var shelves = []struct {
	folder, title, about string
}{
	{tutorials, "Start", "Tutorials: read them in this order."},
	{"how-to", "How-to", "One task a page."},
	{"reference", "Reference", "Tables to look things up in."},
	{"explanation", "Explanation", "Why it works as it does."},
	{"results", "Results", "Measured, with the command of each number."},
	{"contributing", "Contributing", "For those who change rlhost."},
}

// tutorials is the folder of the pages that are read in an order.
const tutorials = "start"

// startOrder is the order of the tutorials.
var startOrder = []string{"install.md", "first-run.md", "gymnasium.md", "environment.md", "component.md", "game.md", "reward.md", "hosts.md", "python.md", "coming-from.md"}

// index is the page that lists all pages, and the sentence that each tutorial begins with.
func index(root string) (string, error) {
	var b strings.Builder
	b.WriteString("# Documentation\n\n" + markdown.Generated)
	for _, s := range shelves {
		pages, err := filepath.Glob(filepath.Join(root, "docs", s.folder, "*.md"))
		if err != nil || len(pages) == 0 {
			return "", fmt.Errorf("docs/%s has %d pages: %w", s.folder, len(pages), err)
		}
		if s.folder == tutorials {
			pages = ordered(pages)
		}
		b.WriteString("\n## " + s.title + "\n\n" + s.about + "\n\n")
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				return "", err
			}
			title, sentence, err := opening(string(text))
			if err != nil {
				return "", fmt.Errorf("%s: %w", page, err)
			}
			entry := fmt.Sprintf("[%s](%s/%s)", title, s.folder, filepath.Base(page))
			if s.folder == tutorials {
				entry += ": " + sentence
			}
			b.WriteString(markdown.Item(entry))
		}
	}
	return b.String(), nil
}

// ordered puts tutorials in their order, and others after them.
func ordered(pages []string) (list []string) {
	rest := map[string]bool{}
	for _, page := range pages {
		rest[filepath.Base(page)] = true
	}
	dir := filepath.Dir(pages[0])
	for _, name := range startOrder {
		if rest[name] {
			list = append(list, filepath.Join(dir, name))
			delete(rest, name)
		}
	}
	for _, page := range pages {
		if rest[filepath.Base(page)] {
			list = append(list, page)
		}
	}
	return list
}

// opening returns a page's title and its first sentence, whose links are left out.
func opening(text string) (title, sentence string, err error) {
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		switch paragraph = strings.TrimSpace(paragraph); {
		case strings.HasPrefix(paragraph, "# "):
			title = strings.TrimPrefix(paragraph, "# ")
		case paragraph == "" || strings.ContainsAny(paragraph[:1], "#<|`!"):
			if !strings.HasPrefix(paragraph, "`") || strings.HasPrefix(paragraph, "```") {
				continue
			}
			fallthrough
		default:
			return title, markdown.WithoutLinks(markdown.Sentences(paragraph)[0]), nil
		}
	}
	return "", "", fmt.Errorf("the page has no sentence after its title %q", title)
}
