package js

import (
	"embed"
	"regexp"
	"strings"
)

//go:embed abi.js module.js spec.js env.js policy.js
var files embed.FS

// parts are the files of a bundle, each after the files that it imports.
var parts = []string{"abi.js", "module.js", "spec.js", "env.js", "policy.js"}

// imported are lines that import from other files, or export names from there.
var imported = regexp.MustCompile(`(?m)^(import|export) \{.*\n`)

// Bundle returns the host as one script without imports and exports, for a page that is a single file. A script behind it uses the same names
// as one that imports the files.
func Bundle() string {
	var all strings.Builder
	for _, name := range parts {
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err) // it is embedded
		}
		all.WriteString(strings.ReplaceAll(imported.ReplaceAllString(string(text), ""), "\nexport ", "\n"))
	}
	return all.String()
}
