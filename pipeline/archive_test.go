package pipeline

import (
	"os"
	"strings"
	"testing"
)

// archive is a text file of named sections, each behind a line "-- name --", in the format known as txtar.
type archive struct {
	comment  string
	sections []section
}

type section struct{ name, data string }

func readArchive(t *testing.T, file string) *archive {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a := &archive{}
	into := &a.comment
	for line := range strings.Lines(string(text)) {
		name, headed := strings.CutPrefix(strings.TrimRight(line, "\n"), "-- ")
		if name, closed := strings.CutSuffix(name, " --"); headed && closed {
			a.sections = append(a.sections, section{name: name})
			into = &a.sections[len(a.sections)-1].data
			continue
		}
		*into += line
	}
	return a
}

// at returns a section, or an empty one.
func (a *archive) at(name string) *section {
	for i := range a.sections {
		if a.sections[i].name == name {
			return &a.sections[i]
		}
	}
	return &section{}
}

func (a *archive) write(t *testing.T, file string) {
	t.Helper()
	var b strings.Builder
	b.WriteString(a.comment)
	for _, s := range a.sections {
		b.WriteString("-- " + s.name + " --\n" + s.data)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// golden compares got with a section of an archive, or writes it there.
func (a *archive) golden(t *testing.T, file, name, got string) {
	t.Helper()
	s := a.at(name)
	if got == s.data {
		return
	}
	if !*update {
		t.Errorf("%s: got:\n%swant:\n%s(rewrite with go test -update)", name, got, s.data)
		return
	}
	s.data = got
	a.write(t, file)
}
