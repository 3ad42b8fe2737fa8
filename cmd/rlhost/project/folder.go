package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Options say what to write.
type Options struct {
	Sources  fs.FS  // of this repository
	Kind     string // Env, Component, Python or Pipeline
	Name     string // of the thing, and of the folder unless Dir says another
	Dir      string // the folder
	Language string // as Named takes it; empty for Pipeline
	Schema   []byte // of pipeline files, for editors
}

// Made is a folder that was written.
type Made struct {
	Dir      string
	Files    []string // what the author edits, without the SDK
	Language Language
	Compiler *Compiler // that build.sh calls; nil where none works here, and the first of the table stands in build.sh
}

// goodName is what names of runs, tables, crates, modules and files have in common.
var goodName = regexp.MustCompile(`^[a-z][a-z0-9]*([-_][a-z0-9]+)*$`)

// Mistake is an option that Write does not take.
type Mistake struct{ Text, Help string }

func (m *Mistake) Error() string { return m.Text }

// check returns the language of the options, or a Mistake.
func (o *Options) check() (Language, error) {
	if !goodName.MatchString(o.Name) || len(o.Name) > 64 {
		return Language{}, &Mistake{fmt.Sprintf("%q cannot be a name here", o.Name), "at most 64 small letters, digits, - and _, a letter first, such as maze"}
	}
	if entries, err := os.ReadDir(o.Dir); len(entries) > 0 {
		return Language{}, &Mistake{fmt.Sprintf("the folder %s is there and is not empty", o.Dir), "choose another name, or remove it"}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Language{}, err
	}
	if o.Kind == Pipeline && o.Language == "" {
		return Language{}, nil
	}
	if o.Kind == Pipeline {
		return Language{}, &Mistake{"a pipeline is in no language", "leave --lang out"}
	}
	l, ok := Named(o.Language)
	if !ok || !slices.Contains(l.Kinds, o.Kind) {
		return Language{}, &Mistake{fmt.Sprintf("there is no %s in the language %q", o.Kind, o.Language), "--lang " + strings.Join(Names(o.Kind), ", ")}
	}
	return l, nil
}

// Write writes a folder. Wrong options are a Mistake, and nothing is written then. Where it fails later, the folder is removed.
func Write(o Options) (*Made, error) {
	l, err := o.check()
	if err != nil {
		return nil, err
	}
	made := &Made{Dir: o.Dir, Language: l}
	if made.Compiler, err = l.Find(); err != nil {
		return nil, err
	}
	f := &folder{Options: o, made: made, words: o.words(l)}
	if err := f.write(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(o.Dir))
	}
	slices.Sort(made.Files)
	return made, nil
}

// words are what stands for the names in the texts of a folder.
func (o *Options) words(l Language) []string {
	module := strings.ReplaceAll(o.Name, "-", "_")
	env := ""
	for _, word := range strings.FieldsFunc(o.Name, func(r rune) bool { return r == '-' || r == '_' }) {
		env += strings.ToUpper(word[:1]) + word[1:]
	}
	grants, grant := "", ""
	if o.Kind == Component && l.Name == "go" { // the example in Go observes a histogram
		grants, grant = "grants = [\"metric\"]\n", " --grant metric"
	}
	return []string{"{name}", o.Name, "{module}", module, "{crate}", module, "{env}", env, "{grants}", grants, "{grant}", grant}
}

// folder is one that is being written.
type folder struct {
	Options
	made  *Made
	words []string
}

func (f *folder) write() error {
	if err := os.MkdirAll(f.Dir, 0o755); err != nil {
		return err
	}
	l := f.made.Language
	parts := slices.Concat(l.SDK, l.Files[f.Kind], []part{
		{"examples/templates/" + f.pipeline(), "pipeline.toml"}, {"examples/templates/gitignore", ".gitignore"},
	})
	if l.Name != "" {
		parts = append(parts, part{"examples/templates/tasks.json", ".vscode/tasks.json"}, part{"LICENSE", "sdk/LICENSE"})
	}
	for _, p := range parts {
		if err := f.copy(p); err != nil {
			return err
		}
	}
	if err := f.put("pipeline.schema.json", f.Schema, 0o644); err != nil || l.Name == "" {
		return err
	}
	if err := f.put("build.sh", f.script(f.compiler()), 0o755); err != nil {
		return err
	}
	return f.put("test.sh", f.tests(), 0o755)
}

// pipeline is the template of the pipeline.
func (f *folder) pipeline() string {
	switch {
	case f.Kind == Pipeline:
		return "pipeline.toml"
	case f.Kind == Component && f.made.Language.Name == "python":
		return "component_python.toml"
	case f.Kind == Component:
		return "component.toml"
	case f.made.Language.Name == "python":
		return "env_python.toml"
	}
	return "env.toml"
}

// copy writes the files that a part stands for.
func (f *folder) copy(p part) error {
	matches, err := fs.Glob(f.Sources, p.from)
	if err != nil {
		return err
	}
	if len(matches) == 0 {
		return fmt.Errorf("%s is not among the sources of this program", p.from)
	}
	for _, from := range matches {
		info, err := fs.Stat(f.Sources, from)
		if err != nil {
			return err
		}
		if info.IsDir() || strings.HasSuffix(from, "_test.go") {
			continue
		}
		to := p.to
		if strings.HasSuffix(to, "/") {
			to += path.Base(from)
			if strings.Count(p.from, "*") > 1 { // the folder's name is in the pattern
				to = p.to + path.Base(path.Dir(from)) + "/" + path.Base(from)
			}
		}
		text, err := fs.ReadFile(f.Sources, from)
		if err != nil {
			return err
		}
		if err := f.put(f.named(to), f.text(from, text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// named puts the names into a template's text.
func (f *folder) named(text string) string { return strings.NewReplacer(f.words...).Replace(text) }

// text is a file as it lies in the folder. What comes from the examples gets the folder's name in place of theirs.
func (f *folder) text(from string, text []byte) []byte {
	switch {
	case strings.HasPrefix(from, "examples/templates/"):
		return []byte(f.named(string(text)))
	case strings.HasPrefix(from, "examples/plugins/"):
		s := strings.NewReplacer(" See README.md.", "", `"corridor@1"`, `"`+f.Name+`@1"`, `"shaper@1"`, `"`+f.Name+`@1"`, "github.com/rlhost/rlhost/examples/plugins/shaper-go/", f.Name+"/").Replace(string(text))
		return []byte(s + f.tail(from))
	}
	return text
}

// tail is what follows an example in the folder's file, in languages whose tests belong to the file that they test.
func (f *folder) tail(from string) string {
	switch from {
	case "examples/plugins/corridor-rust/src/lib.rs":
		return "\n#[cfg(test)]\nmod tests;\n"
	case "examples/plugins/corridor-zig/corridor.zig":
		text, _ := fs.ReadFile(f.Sources, "examples/templates/env_test.zig") // it is embedded with the others
		return string(text)
	}
	return ""
}

// put writes one file.
func (f *folder) put(name string, text []byte, mode fs.FileMode) error {
	to := filepath.Join(f.Dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if !strings.HasPrefix(name, "sdk/") {
		f.made.Files = append(f.made.Files, name)
	}
	return os.WriteFile(to, text, mode)
}

// compiler is the one that was found, else the first of the table.
func (f *folder) compiler() *Compiler {
	if f.made.Compiler != nil {
		return f.made.Compiler
	}
	return &f.made.Language.Compilers[0]
}

// script is build.sh.
func (f *folder) script(c *Compiler) []byte {
	return f.shell("Builds "+f.built()+".", c.CC, c.Once+c.Build)
}

// built is what build.sh makes.
func (f *folder) built() string {
	if f.made.Language.Name == "python" {
		return "the Python environment of this folder, .venv"
	}
	return "{name}.wasm"
}

func (f *folder) shell(about, cc, lines string) []byte {
	text := "#!/bin/sh\n# " + about + "\nset -eu\ncd \"$(dirname \"$0\")\"\n" + strings.ReplaceAll(lines, "{cc}", cc)
	return []byte(f.named(text))
}

// tests is test.sh: unit tests where there are some, then the checks of rlhost.
func (f *folder) tests() []byte {
	l, lines, cc := f.made.Language, "", f.compiler().CC
	if f.Kind != Component {
		lines = l.Test
	}
	if native := l.native(); native != nil {
		cc = native.CC
	}
	switch {
	case l.Name != "python":
		lines += "rlhost check {name}.wasm{grant}\n"
	case f.Kind == Component:
		lines += "{cc} -c 'import {module}'\nrlhost validate\n"
	default:
		lines += "rlhost check gymnasium:{module}:{env}-v0\n"
	}
	return f.shell("Tests it.", cc, lines)
}
