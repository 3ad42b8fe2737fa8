package graph

import (
	_ "embed"

	"github.com/rlhost/rlhost/core/table"
)

//go:embed explain.md
var explainText string

// Explain returns the page of a code such as E040: its meaning, an example, and the remedy. ok is false if there
// is no such code. Case does not matter.
func Explain(code string) (page string, ok bool) { return table.Page(explainText, code) }

// Codes returns the codes that Explain knows, in the order of their pages.
func Codes() []string { return table.Codes(explainText) }
