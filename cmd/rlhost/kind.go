package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/rlhost/rlhost/cmd/rlhost/modules"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// wordKind is the kind of thing that a word of the command line names.
type wordKind int

const (
	aPipeline     wordKind = iota // a pipeline file, or nothing that is known
	aModule                       // a WebAssembly module
	aProgram                      // a native plugin
	anEnvironment                 // NAME@VERSION, PLUGIN:ENVIRONMENT, or an id of Gymnasium
	aRun
)

// codeNotPipeline is the code of a command that was given another kind of thing than it works on.
const codeNotPipeline = "E087"

// kindOfWord returns the kind of the thing that a word names. A file comes first, whatever else has its name.
func kindOfWord(word, runsDir string, builtins []string) wordKind {
	info, err := os.Stat(word)
	if err == nil && info.Mode().IsRegular() {
		return kindOfFile(word)
	}
	switch {
	case err != nil && strings.HasSuffix(word, ".wasm"):
		return aModule
	case strings.HasSuffix(word, ".toml"):
		return aPipeline
	case err != nil && graph.LikelyUse(word, builtins) != nil:
		if _, err := runs.Open(runsDir, word); err == nil {
			return aRun // a run may have an environment's name
		}
		return anEnvironment
	}
	_, err = runs.Open(runsDir, word)
	if err == nil || errors.Is(err, runs.ErrNotFound) && numbered(word) {
		return aRun
	}
	return aPipeline
}

// kindOf is kindOfWord in a folder of runs, with the pipeline file: that of the run, or the word itself.
func (p *program) kindOf(word string, folder *runsFlag) (is wordKind, file string) {
	is = kindOfWord(word, folder.Dir(), builtin.Names())
	if run, err := runs.Open(folder.Dir(), word); is == aRun && err == nil {
		return is, filepath.Join(run.Dir, runPipeline)
	}
	return is, word
}

// runPipeline is the file in a run's folder with the pipeline that it runs.
const runPipeline = "pipeline.toml"

// kindOfFile looks at the first bytes of a file whose name does not tell its kind.
func kindOfFile(path string) wordKind {
	switch filepath.Ext(path) {
	case ".toml":
		return aPipeline
	case ".wasm":
		return aModule
	case ".py":
		return aProgram
	}
	f, err := files.Open(path)
	if err != nil {
		return aPipeline
	}
	defer f.Close()
	var head [4]byte
	n, _ := io.ReadFull(f, head[:]) // a shorter file is none of them
	switch {
	case bytes.Equal(head[:n], []byte("\x00asm")):
		return aModule
	case bytes.Equal(head[:n], []byte("\x7fELF")), bytes.HasPrefix(head[:n], []byte("#!")):
		return aProgram
	}
	return aPipeline
}

// numbered reports whether a word is the name and the number of a run, such as cartpole/3.
func numbered(word string) bool {
	name, number, ok := strings.Cut(word, "/")
	return ok && name != "" && number != "" && !strings.ContainsFunc(number, func(r rune) bool { return r < '0' || r > '9' })
}

// notPipeline is the error of a command that wants a pipeline file and was given something else; nil if the word is not known to be
// anything else.
func notPipeline(word, runsDir string, builtins []string) error {
	is, help := "", ""
	switch kindOfWord(word, runsDir, builtins) {
	case aPipeline:
		return nil
	case aModule:
		is, help = "is a WebAssembly module", trainingFile(word, pathWithSlash(word))
		if modules.IsComponent(word) {
			name := plainName(word)
			is, help = "is a module of a component", fmt.Sprintf("name it in a pipeline file, with wires to its slots:\n\n    [component.%s]\n    runtime = \"wasm\"\n    use = %q", name, pathWithSlash(word))
		}
	case aProgram:
		is, help = "is a program", fmt.Sprintf("rlhost plugin add %s writes it into a pipeline file; rlhost plugin show %[1]s prints the components that it makes", pathWithSlash(word))
	case anEnvironment:
		uses := graph.LikelyUse(word, builtins)
		is, help = "is an environment", trainingFile(word, uses[0])
		if len(uses) > 1 {
			help += fmt.Sprintf("\n\n  built in is use = %q", uses[1])
		}
	case aRun:
		run, err := runs.Open(runsDir, word)
		if err != nil {
			return fail(exitUsage, err)
		}
		is = "is run " + run.ID()
		help = fmt.Sprintf("rlhost train --resume %s continues it; rlhost show %[1]s shows it; its pipeline is %s", run.ID(), filepath.Join(run.Dir, runPipeline))
	}
	return fail(exitUsage, fmt.Errorf("%s: error[%s]: %s, not a pipeline file\n  help: %s", word, codeNotPipeline, is, help))
}

// trainingFile is the remedy with the shortest file that trains on an environment.
func trainingFile(word, use string) string {
	name := plainName(word)
	return fmt.Sprintf(`write this into %[1]s.toml, then rlhost train %[1]s.toml:

    rlhost = 1
    [run]
    name = %[1]q
    stop = { env_steps = 1_000_000 }
    [env.%[1]s]
    use = %[2]q
    [train]
    preset = "general"
    env = %[1]q`, name, use)
}

// plainName makes a name for a table of what a word names: its letters and digits, without folder, extension and version.
func plainName(word string) string {
	base := strings.ToLower(filepath.Base(word))
	base = strings.TrimSuffix(base, filepath.Ext(base))
	if at := strings.LastIndexByte(base, ':'); at >= 0 {
		base = base[at+1:]
	}
	base, _, _ = strings.Cut(base, "@")
	if at := strings.LastIndex(base, "-v"); at > 0 {
		base = base[:at]
	}
	base = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, base)
	if base == "" || base[0] < 'a' || base[0] > 'z' {
		return "mine"
	}
	return base
}

// pathWithSlash is a file as use names it: a path has a slash in it.
func pathWithSlash(file string) string {
	if strings.ContainsRune(file, filepath.Separator) {
		return file
	}
	return "./" + file
}
