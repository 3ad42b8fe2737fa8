package graph

import (
	"regexp"
	"slices"
	"strings"
)

// gymnasiumID is an id as Gymnasium registers them, such as CartPole-v1 or ALE/Pong-v5.
var gymnasiumID = regexp.MustCompile(`^([A-Za-z0-9_.]+/)?[A-Za-z0-9_.]+-v[0-9]+$`)

// LikelyUse returns what an [env] table's key use may have been meant to be, the likeliest first: what is valid as it is, an id of Gymnasium with
// its plugin before it, and the built-in environment of that name. It returns nil for a path, and for a name that resembles none.
func LikelyUse(use string, builtins []string) []string {
	if _, _, native := SplitUse(use); native || slices.Contains(builtins, use) {
		return []string{use}
	}
	if strings.HasSuffix(use, ".wasm") || strings.HasPrefix(use, ".") {
		return nil
	}
	var uses []string
	if gymnasiumID.MatchString(use) {
		uses = append(uses, "gymnasium:"+use)
	}
	for _, builtin := range builtins {
		if bareName(builtin) == bareName(use) {
			uses = append(uses, builtin)
		}
	}
	return uses
}

// bareName is the name of an environment without version, case and punctuation: of cartpole@1 and of CartPole-v1 it is cartpole.
func bareName(use string) string {
	name, _, _ := strings.Cut(strings.ToLower(use), "@")
	if at := strings.LastIndex(name, "-v"); at > 0 && strings.Trim(name[at+2:], "0123456789") == "" {
		name = name[:at]
	}
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '/' || r == '.' {
			return -1
		}
		return r
	}, name)
}
