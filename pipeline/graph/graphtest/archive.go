package graphtest

import (
	"flag"
	"io/fs"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Archive is a text file of named sections, each after a line "-- name --", in the format known as txtar.
type Archive struct {
	comment  string
	Sections []Section
}

// Section is a named part of an Archive.
type Section struct{ Name, Data string }

// ReadArchive reads an archive from a file.
func ReadArchive(t testing.TB, file string) *Archive {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a := &Archive{}
	into := &a.comment
	for line := range strings.Lines(string(text)) {
		name, headed := strings.CutPrefix(strings.TrimRight(line, "\n"), "-- ")
		if name, closed := strings.CutSuffix(name, " --"); headed && closed {
			a.Sections = append(a.Sections, Section{Name: name})
			into = &a.Sections[len(a.Sections)-1].Data
			continue
		}
		*into += line
	}
	return a
}

// At returns a section, or an empty one.
func (a *Archive) At(name string) *Section {
	for i := range a.Sections {
		if a.Sections[i].Name == name {
			return &a.Sections[i]
		}
	}
	return &Section{}
}

// Read returns a section as graph.ParseOptions.Read does.
func (a *Archive) Read(name string) ([]byte, error) {
	if s := a.At(name); s.Name != "" {
		return []byte(s.Data), nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// Getenv looks a variable up in the lines NAME=VALUE of the section env.
func (a *Archive) Getenv(name string) (string, bool) {
	for line := range strings.Lines(a.At("env").Data) {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return strings.TrimSuffix(value, "\n"), true
		}
	}
	return "", false
}

func (a *Archive) write(t *testing.T, file string) {
	t.Helper()
	var b strings.Builder
	b.WriteString(a.comment)
	for _, s := range a.Sections {
		b.WriteString("-- " + s.Name + " --\n" + s.Data)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Golden compares got with a section of an archive, or writes it there.
func (a *Archive) Golden(t *testing.T, file, name, got string) {
	t.Helper()
	s := a.At(name)
	if got == s.Data {
		return
	}
	if !*update {
		t.Errorf("%s: got:\n%swant:\n%s(rewrite with go test -update)", name, got, s.Data)
		return
	}
	s.Data = got
	a.write(t, file)
}
