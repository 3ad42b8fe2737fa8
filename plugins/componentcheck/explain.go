package componentcheck

import (
	_ "embed"

	"github.com/rlhost/rlhost/core/table"
)

//go:embed explain.md
var pages string

// Explain returns the page of a check such as C03: its purpose, the usual causes of failure, and the remedy. ok is false if there is
// no such check. Case does not matter.
func Explain(id string) (page string, ok bool) { return table.Page(pages, id) }

// Codes returns the checks that Explain knows, in the order of their pages.
func Codes() []string { return table.Codes(pages) }
