package control

import (
	"fmt"
	"strings"
)

// kindPrefix begins a pattern that matches a component's kind.
const kindPrefix = "kind:"

// Pattern names components: "rollout" all instances of that component, "rollout[2]" one of them, "roll*" and "r?llout" the
// components whose name matches (* is any number of characters, ? is one), "kind:learner" all of a kind. Use ParsePattern.
type Pattern struct {
	name, index string // globs; index is empty where all instances are meant
	kind        bool   // name is for the kind
}

// ParsePattern parses a pattern.
func ParsePattern(text string) (p Pattern, err error) {
	p.name, p.kind = strings.CutPrefix(text, kindPrefix)
	if name, rest, indexed := strings.Cut(p.name, "["); indexed {
		index, closed := strings.CutSuffix(rest, "]")
		if p.kind || !closed || !all(index, inIndex) {
			return Pattern{}, fmt.Errorf("pattern %q: want the number of an instance at its end, as in rollout[2]", text)
		}
		p.name, p.index = name, index
	}
	if !all(p.name, inName) {
		return Pattern{}, fmt.Errorf("pattern %q: want a name of letters, digits, - and _, with * and ? for others, "+
			"as in rollout, rollout[2], roll* or kind:learner", text)
	}
	return p, nil
}

// Match reports whether the pattern matches a component instance of that name and kind.
func (p Pattern) Match(name, kind string) bool {
	if p.kind {
		return glob(p.name, kind)
	}
	base, rest, indexed := strings.Cut(name, "[")
	if !glob(p.name, base) {
		return false
	}
	index, _ := strings.CutSuffix(rest, "]")
	return p.index == "" || indexed && glob(p.index, index)
}

// Match reports whether a pattern matches a component instance; the error is for a malformed pattern.
func Match(pattern, name, kind string) (bool, error) {
	p, err := ParsePattern(pattern)
	return err == nil && p.Match(name, kind), err
}

// all reports whether s is not empty and ok holds for each character.
func all(s string, ok func(c byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return s != ""
}

func inIndex(c byte) bool { return c >= '0' && c <= '9' || c == '*' || c == '?' }

func inName(c byte) bool {
	return inIndex(c) || c == '-' || c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// glob matches a whole string. It goes back to the last star alone, so that its time is bounded by the product of the
// lengths.
func glob(pattern, s string) bool {
	star, from := -1, 0 // the last star, and the end of its match
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
