package table

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/names"
)

// maxName bounds the names that are compared.
const maxName = 100

// Nearest returns the candidate that name probably means. Candidates within a third of the name's length (at least
// two edits) count, and candidates that begin with it.
func Nearest(name string, candidates []string) (string, bool) {
	if len(name) > maxName {
		return "", false
	}
	limit := max(2, len(name)/3)
	best, found := limit+1, ""
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		d := distance(strings.ToLower(name), strings.ToLower(c), limit)
		if d >= min(len(name), len(c)) {
			d = limit + 1 // as many edits as letters: no likeness at all
		}
		if len(name) >= 2 && (strings.HasPrefix(c, name) || len(c) >= 2 && strings.HasPrefix(name, c)) {
			d = min(d, 1)
		}
		if d < best {
			best, found = d, c
		}
	}
	return found, found != ""
}

// Closest returns the n candidates that resemble a name most, the closest first. Of a path with slashes its last part may resemble the
// name, too; a part that has the name in it is closer than one with other letters.
func Closest(name string, candidates []string, n int) []string {
	if len(name) > maxName {
		return nil
	}
	name = strings.ToLower(name)
	far := func(c string) int {
		c = strings.ToLower(c)
		last := c[strings.LastIndexByte(c, '/')+1:]
		edits := 2 + 2*min(distance(name, c, maxName), distance(name, last, maxName))
		switch {
		case strings.Contains(last, name):
			edits = min(edits, 2)
		case strings.Contains(c, name):
			edits = min(edits, 3)
		}
		return edits
	}
	sorted := slices.SortedStableFunc(slices.Values(slices.Sorted(slices.Values(candidates))), func(a, b string) int { return far(a) - far(b) })
	return sorted[:min(n, len(sorted))]
}

// distance is the number of insertions, deletions and substitutions between a and b (Levenshtein 1966), with a
// swap of neighbours counted as one; more than limit may be returned as any number above it.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	s, t := []rune(a), []rune(b)
	older, old, row := make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range old {
		old[j] = j
	}
	for i := range s {
		row[0] = i + 1
		for j := range t {
			cost := 1
			if s[i] == t[j] {
				cost = 0
			}
			row[j+1] = min(old[j+1]+1, row[j]+1, old[j]+cost)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
		older, old, row = old, row, older
	}
	return old[len(t)]
}

// DidYouMean is the help for an unknown name: the nearest candidate, else the list if it is short. format puts the
// name in quotes as in the file.
func DidYouMean(name, format, what string, candidates []string) string {
	if c, ok := Nearest(name, candidates); ok {
		return fmt.Sprintf("did you mean "+format+"?", c)
	}
	if len(candidates) == 0 || len(candidates) > 14 {
		return ""
	}
	return what + ": " + strings.Join(slices.Compact(slices.Sorted(slices.Values(candidates))), ", ")
}

// MeantKey is DidYouMean for a key, which may also be a word of an earlier version or of another program.
func MeantKey(name string, known []string) string {
	return cmp.Or(names.Meant(name, known), DidYouMean(name, "`%s`", "keys", known))
}
