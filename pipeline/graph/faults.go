package graph

import (
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
)

// faults are the keys of a table that could not be decoded. They have their defaults, so a check of the table may find more wrong
// with it than there is.
type faults struct {
	keys   []string // of values that are wrong
	tables []string // with unknown keys, each with the dot at its end; empty for the table itself
}

func (f *faults) add(e *table.Error) {
	if e.Code == table.CodeUnknown {
		f.tables = append(f.tables, e.Table)
		return
	}
	f.keys = append(f.keys, e.Key)
}

// explain reports whether an error of a check may only follow from them: it is about a key that has its default, names one, or
// misses a key that may be misspelt.
func (f *faults) explain(e *component.ConfigError) bool {
	if slices.ContainsFunc(f.keys, func(key string) bool { return within(e.Key, key) || within(key, e.Key) }) {
		return true
	}
	if slices.ContainsFunc(wordsOf(e.Reason), func(word string) bool { return slices.Contains(f.keys, word) }) {
		return true
	}
	if codeOf(e) != "E004" {
		return false
	}
	parent := e.Key[:strings.LastIndexByte(e.Key, '.')+1]
	return slices.Contains(f.tables, parent)
}

// within reports whether a key is another one or a part of it.
func within(key, of string) bool {
	rest, ok := strings.CutPrefix(key, of)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// wordsOf splits a sentence where no key has a character.
func wordsOf(sentence string) []string {
	return strings.FieldsFunc(sentence, func(r rune) bool { return r >= 0x80 || !isBare(byte(r)) })
}
