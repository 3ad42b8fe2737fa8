package envcheck

import (
	_ "embed"
	"strings"
)

//go:embed explain.md
var pages string

// Explain returns the page of a check such as D03: its purpose, the usual causes of failure, and the remedy. ok is
// false if there is no such check. Case does not matter.
func Explain(id string) (page string, ok bool) {
	id = strings.ToUpper(strings.TrimSpace(id))
	_, rest, ok := strings.Cut(pages, "\n## "+id+" ")
	if !ok {
		return "", false
	}
	body, _, _ := strings.Cut(rest, "\n## ")
	return id + " " + strings.TrimSpace(body) + "\n", true
}
