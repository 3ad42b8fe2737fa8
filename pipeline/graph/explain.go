package graph

import (
	_ "embed"
	"strings"
)

//go:embed explain.md
var explainText string

// Explain returns the page of a code such as E040: what it means, an example, and the cure. ok is false if there
// is no such code. Case does not matter.
func Explain(code string) (page string, ok bool) {
	heading := "## " + strings.ToUpper(strings.TrimSpace(code)) + " "
	_, rest, found := strings.Cut("\n"+explainText, "\n"+heading)
	if !found || len(heading) < len("## E001 ") {
		return "", false
	}
	body, _, _ := strings.Cut(rest, "\n## ")
	return heading[len("## "):] + strings.TrimSpace(body) + "\n", true
}
