package shape

import (
	"go/ast"
	"go/token"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// quiet are folders whose texts no user reads, or that are part of committed modules, whose bytes a message would change.
var quiet = []string{"bench/", "internal/", "plugins/plugintest/", "plugins/author/authortest/", "core/internal/", "gpu/policy/policytest/", "sdk/wasm/"}

// TestShape_MessagesAreSaidAloud: help, errors and notes use the words of the pages.
func TestShape_MessagesAreSaidAloud(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.generated || s.test || startsWithAny(s.path, quiet) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.Field:
				if n.Tag != nil {
					tag, _ := strconv.Unquote(n.Tag.Value)
					told(t, s, n.Tag.Pos(), reflect.StructTag(tag).Get("help"))
					return false
				}
			case *ast.BasicLit:
				if n.Kind == token.STRING {
					text, _ := strconv.Unquote(n.Value)
					told(t, s, n.Pos(), text)
				}
			}
			return true
		})
	}
}

// told reports the banned words of a message. A single word is a key or a name.
func told(t *testing.T, s source, at token.Pos, text string) {
	if !strings.Contains(strings.TrimSpace(text), " ") {
		return
	}
	for _, f := range wordFaults(text, s.set.Position(at).Line) {
		t.Errorf("%s:%d: %s", s.path, f.line, f.text)
	}
}

func startsWithAny(path string, folders []string) bool {
	for _, folder := range folders {
		if strings.HasPrefix(path, folder) {
			return true
		}
	}
	return false
}
