package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rlhost/rlhost/internal/markdown"
)

// codeTexts are the texts that rlhost explain prints from, with the titles of their sections on the page.
var codeTexts = []struct{ title, path string }{
	{"Errors and warnings of pipelines and plugins", "pipeline/graph/explain.md"},
	{"Messages of a running job", "cmd/rlhost/explain.md"},
	{"Checks of environments", "plugins/envcheck/explain.md"},
	{"Checks of components", "plugins/componentcheck/explain.md"},
}

// codes is the page of all codes: a table of them, then the text of each.
func codes(root string) (string, error) {
	var texts, contents strings.Builder
	for _, source := range codeTexts {
		text, err := os.ReadFile(filepath.Join(root, source.path))
		if err != nil {
			return "", err
		}
		sections := strings.Split("\n"+string(text), "\n## ")
		_, intro, _ := strings.Cut(strings.TrimSpace(sections[0]), "\n")
		fmt.Fprintf(&texts, "\n## %s\n", source.title)
		if intro != "" {
			texts.WriteString("\n" + markdown.Prose(intro))
		}
		var rows [][]string
		for _, section := range sections[1:] {
			heading, body, _ := strings.Cut(section, "\n")
			code, meaning, ok := strings.Cut(heading, " ")
			if !ok {
				return "", fmt.Errorf("%s: the heading %q is no code with its meaning", source.path, heading)
			}
			rows = append(rows, []string{fmt.Sprintf("[%s](#%s)", code, markdown.Anchor(heading)), markdown.Escape(meaning)})
			fmt.Fprintf(&texts, "\n### %s\n\n%s", markdown.Escape(heading), markdown.Prose(remedy.Replace(body)))
		}
		fmt.Fprintf(&contents, "\n**%s**\n\n%s", source.title, markdown.Table([]string{"Code", "Meaning"}, rows))
	}
	return "# Codes\n\n" + markdown.Generated + "\n" + markdown.Prose("Every code of an error, a warning or a check, with its fix.\n`rlhost explain CODE` prints the text of a code in the terminal.") +
		contents.String() + texts.String(), nil
}

// remedy makes the word before the remedy bold.
var remedy = strings.NewReplacer("\nCure: ", "\n**Fix:** ", "\nFix: ", "\n**Fix:** ")
