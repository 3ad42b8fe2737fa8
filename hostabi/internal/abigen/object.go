package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// objectData is what sdk/c/rl_guest.h declares, for languages that bind the object rl_guest.o.
type objectData struct{ Functions, Callbacks []declaration }

// declaration is a function, or the type of one of the author's, with types as in C; a pointer to one of the author's is that one's name.
type declaration struct {
	Name, Result string
	Params       []parameterData
}

// Object reads the header of rl_guest.o, for the templates that use it.
func (d templateData) Object() (o objectData, err error) {
	text, err := os.ReadFile(filepath.Join(d.root, "sdk/c/rl_guest.h"))
	if err != nil {
		return o, err
	}
	callbacks := map[string]bool{}
	for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
		f := declaration{Name: m[3], Result: strings.TrimSpace(m[2])}
		for _, p := range strings.Split(m[4], ",") {
			if p = strings.Join(strings.Fields(p), " "); p == "void" {
				continue
			}
			at := strings.LastIndexAny(p, " *") + 1
			if at == 0 {
				return o, fmt.Errorf("%s: parameter %q has no name", f.Name, p)
			}
			typ := strings.TrimSpace(p[:at])
			if name := strings.TrimSuffix(typ, " *"); callbacks[name] {
				typ = name
			}
			f.Params = append(f.Params, parameterData{Name: p[at:], Type: typ})
		}
		if m[1] != "" {
			callbacks[f.Name] = true
			o.Callbacks = append(o.Callbacks, f)
		} else {
			o.Functions = append(o.Functions, f)
		}
	}
	return o, nil
}

// declared finds the declarations of functions and of their types.
var declared = regexp.MustCompile(`(?m)^(typedef )?((?:_Noreturn |const )?\w+ \**)(rl_guest_\w+)\(([^)]*)\);`)
