package main

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
)

// pages are the pages whose blocks are run here, one by one. TestNewcomer follows the others from their first to their last block.
func pages(t *testing.T) []string {
	list := []string{"README.md", "CONTRIBUTING.md", "examples/README.md"}
	for _, pattern := range []string{"docs/*/*.md", "sdk/*/README.md", "examples/*/*/README.md"} {
		found, err := filepath.Glob("../../" + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		for _, path := range found {
			list = append(list, strings.TrimPrefix(path, "../../"))
		}
	}
	return slices.DeleteFunc(list, func(page string) bool {
		return slices.Contains(followed, page)
	})
}

// codeBlock is one fenced block of a page; name is a file's where the fence says one, section the heading above it.
type codeBlock struct {
	line                          int
	language, name, text, section string
}

var fence = regexp.MustCompile("^```(\\w*)(?: (\\S+))?$")

// blocksOf returns the blocks of a page. Indented blocks, unlike fenced ones, have no language.
func blocksOf(t *testing.T, page string) (list []codeBlock) {
	t.Helper()
	data, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	var open *codeBlock
	blank, section := true, ""
	for i, line := range strings.Split(string(data), "\n") {
		switch m := fence.FindStringSubmatch(line); {
		case open != nil && line == "```":
			list, open = append(list, *open), nil
		case open != nil:
			open.text += line + "\n"
		case m != nil:
			open = &codeBlock{line: i + 1, language: m[1], name: m[2], section: section}
		case strings.HasPrefix(line, "#"):
			section = strings.TrimLeft(line, "# ")
		case blank && strings.HasPrefix(line, "    "):
			t.Errorf("%s:%d: an indented block: fence it, with its language", page, i+1)
		}
		blank = line == ""
	}
	if open != nil {
		t.Errorf("%s:%d: the block does not end", page, open.line)
	}
	return list
}

// TestDocs_QuotesStandInTheSource: a block of Go or C with the path of a file is a part of that file, word by word.
func TestDocs_QuotesStandInTheSource(t *testing.T) {
	t.Parallel()
	quotes := 0
	for _, page := range pages(t) {
		for _, b := range blocksOf(t, page) {
			if b.language != "go" && b.language != "c" || !strings.Contains(b.name, "/") {
				continue
			}
			quotes++
			source, err := os.ReadFile("../../" + b.name)
			if err != nil {
				t.Errorf("%s:%d: %v", page, b.line, err)
			} else if n := strings.Count("\n"+string(source), "\n"+b.text); n != 1 {
				t.Errorf("%s:%d: the quote stands %d times in %s, want once", page, b.line, n, b.name)
			}
		}
	}
	if quotes == 0 {
		t.Error("no page quotes a file")
	}
}

// TestDocs_EveryBlockRuns does what the pages say, each in a folder of its own. testdata/docs has for a page what must be
// there before: files, and commands that make some. Commands to a running job have one, which trains on pipeline.toml.
func TestDocs_EveryBlockRuns(t *testing.T) {
	t.Parallel()
	python, err := filepath.Abs("../../.venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(python); err != nil {
		t.Skip("no Python environment: run make tools")
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output() // the folder's own would be empty
	if err != nil {
		t.Fatal(err)
	}
	dir, runtime := t.TempDir(), t.TempDir()
	for _, page := range pages(t) {
		name := strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(page, "/README.md"), ".md"), "/", "_")
		s := pageScript{t: t, page: page}
		if archive, err := txtar.ParseFile("testdata/docs/" + name + ".txtar"); err == nil {
			s.archive = *archive
		}
		for _, b := range blocksOf(t, page) {
			s.add(&b)
		}
		s.endJob()
		s.archive.Comment = append(slices.Clip(s.archive.Comment), s.lines.String()...) // the files follow it in memory
		if err := os.WriteFile(filepath.Join(dir, name+".txtar"), txtar.Format(&s.archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := scripts(t, dir)
	setup := p.Setup
	p.Setup = func(e *testscript.Env) error {
		e.Setenv("RLHOST_PYTHON", python)
		e.Setenv("PATH", filepath.Dir(python)+":"+os.Getenv("PATH"))
		e.Setenv("HOME", os.Getenv("HOME"))
		e.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
		e.Setenv("CGO_ENABLED", "0")
		err := setup(e)
		e.Setenv("XDG_RUNTIME_DIR", runtime) // short enough for a socket
		return err
	}
	testscript.Run(t, p)
}

// pageScript is a page as a script.
type pageScript struct {
	t       *testing.T
	page    string
	archive txtar.Archive
	lines   strings.Builder
	jobs    int
	job     bool // one runs
}

func (s *pageScript) say(format string, args ...any) { fmt.Fprintf(&s.lines, format+"\n", args...) }

func (s *pageScript) file(name, text string) {
	s.archive.Files = append(s.archive.Files, txtar.File{Name: name, Data: []byte(text)})
}

// inExample compares a block of Go with the example of pipeline/session: its lines must be there, in the same order.
func (s *pageScript) inExample(b *codeBlock) {
	rest, err := os.ReadFile("../../example_test.go")
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(b.text) {
		_, after, ok := strings.Cut(string(rest), strings.TrimSpace(line))
		if !ok {
			s.t.Errorf("%s:%d: %q is not in ExampleTrain", s.page, b.line, line)
		}
		rest = []byte(after)
	}
}

func (s *pageScript) add(b *codeBlock) {
	s.say("# %s:%d", s.page, b.line)
	name := b.name
	if name == "" {
		name = fmt.Sprintf("line%d.%s", b.line, b.language)
	}
	switch b.language {
	case "text": // output, or a picture
	case "c", "rust", "d", "nim", "zig": // of the references and of ports, which examples/plugins compiles
		quotes := b.language == "c" && strings.Contains(b.name, "/") // see TestDocs_QuotesStandInTheSource
		if !quotes && !strings.HasPrefix(s.page, "docs/reference/sdk-") && s.page != "docs/how-to/porting.md" || b.name == "" {
			s.t.Errorf("%s:%d: nobody compiles this", s.page, b.line)
		}
	case "ini": // the unit that TestService_TheUnitOfThePageWorks starts
	case "toml":
		s.file(name, s.base(b.text)+b.text)
		s.say("exec rlhost validate %s", name)
	case "python":
		s.file(name, b.text)
		if strings.Contains(b.text, "rlhost.serve(") {
			s.say("exec rlhost plugin show ./%s --interpreter $RLHOST_PYTHON\nstdout .", name)
		} else {
			s.say("exec $RLHOST_PYTHON %s", name)
		}
	case "sh":
		if b.name != "" && slices.Contains([]string{"docs/reference/sdk-c.md", "docs/reference/sdk-others.md", "docs/reference/sdk-zig.md"}, s.page) {
			return // a build line with a label: examples/plugins follows it
		}
		for line := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", " ")) {
			line, _, _ = strings.Cut(line, " #")
			for command := range strings.SplitSeq(line, "&&") {
				if command = strings.TrimSpace(command); command != "" {
					s.command(b, strings.TrimPrefix(command, "bin/"))
				}
			}
		}
	case "go": // part of the example that go test runs, or a quote
		if b.name == "" {
			s.inExample(b)
		}
	default:
		s.t.Errorf("%s:%d: nobody runs blocks in %q; output is text", s.page, b.line, b.language)
	}
}

// base is the remainder of a pipeline's file, for a block that is a part of one.
func (s *pageScript) base(text string) string {
	if strings.Contains(text, "rlhost = 1") {
		return ""
	}
	for _, f := range s.archive.Files {
		if f.Name == "base.toml" {
			return string(f.Data)
		}
	}
	return "rlhost = 1\n[run]\nname = \"page\"\n[env.cartpole]\nuse = \"cartpole@1\"\n[train]\npreset = \"ppo\"\nenv = \"cartpole\"\n"
}

// command adds one command, or a short check that it is one.
func (s *pageScript) command(b *codeBlock, command string) {
	words := strings.Fields(command)
	switch name := words[0]; {
	case name == "rlhost":
		s.ours(command, words[1])
	case name == "cd" || name == "export":
	case name == "git": // clones the module from where its path says
		if module, err := os.ReadFile("../../go.mod"); err != nil || !strings.HasPrefix(string(module), "module "+strings.TrimPrefix(words[2], "https://")+"\n") {
			s.t.Errorf("%s:%d: %q does not clone this module: %v", s.page, b.line, command, err)
		}
	case name == "make":
		s.say("exec make -C $ROOT -n %s", strings.Join(words[1:], " "))
	case name == "pip":
		s.say("cd $ROOT\nexec $RLHOST_PYTHON -m pip -q %s --dry-run --no-index --no-deps --no-build-isolation\ncd $WORK", strings.Join(words[1:], " "))
	case name == "GOOS=wasip1": // a module, built in the folder of the page
		at := slices.Index(words, "-o") + 1
		words[at] = "$WORK/" + words[at]
		folder := path.Dir(s.page)
		if strings.HasPrefix(words[len(words)-1], "./examples/") {
			folder = "." // as in other commands, the repository's
		}
		s.say("cd $ROOT/%s\nexec sh -c '%s'\ncd $WORK", folder, strings.Join(words, " "))
	case name == "cc", name == "go" && words[1] == "build":
		at := slices.Index(words, "-o") + 1
		words[at] = "$WORK/" + words[at]
		s.say("cd $ROOT\nexec sh -c '%s'\ncd $WORK", strings.Join(words, " "))
	case name == "go":
		at := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "./") })
		s.say("cd $ROOT\nexec go list %s\ncd $WORK", words[at])
	case strings.HasSuffix(name, "python"):
		if slices.ContainsFunc(s.archive.Files, func(f txtar.File) bool { return f.Name == words[1] }) {
			return // a block of the page, which runs where it stands
		}
		s.say("exec $RLHOST_PYTHON -m ast $ROOT/%s", words[1])
	case strings.HasSuffix(name, ".py"):
		s.say("exec $RLHOST_PYTHON -m ast $ROOT/%s", name)
	case strings.HasSuffix(name, ".sh"):
		s.say("exec bash -n $ROOT/%s", name)
	default:
		if !inFollowed(s.t, command) {
			s.t.Errorf("%s:%d: nobody runs %q", s.page, b.line, command)
		}
	}
}

// inFollowed reports whether a page that TestNewcomer follows has the command.
func inFollowed(t *testing.T, command string) bool {
	for _, page := range followed {
		for _, b := range blocksOf(t, page) {
			if b.language == "sh" && slices.Contains(strings.Split(b.text, "\n"), command) {
				return true
			}
		}
	}
	return false
}

// toJobs are the commands that a running job answers, with flags that keep them short.
var toJobs = map[string]string{
	"status": "", "swap": " --trial-envs 0 --probation 0s", "rollback": "", "reload": "", "scale": "", "pause": "", "unpause": "", "checkpoint": "", "stop": "",
	"tap": " --limit 1", "logs": "", "request": "", "top": "",
}

// ours adds a command of rlhost.
func (s *pageScript) ours(command, verb string) {
	flags, live := toJobs[verb]
	if command, background := strings.CutSuffix(command, " &"); background { // it prints a line when it is ready
		s.say("start background %s\nwaitfor background.out .", command)
		return
	}
	if !live {
		s.say("exec %s%s", command, inBrief(command))
		return
	}
	if !s.job {
		s.jobs++
		s.job = true
		s.say("start job%d rlhost train\nexec rlhost status --wait", s.jobs)
	}
	if verb == "logs" {
		command = strings.TrimSuffix(command, " -f") // which does not end
	}
	if verb == "top" { // TestTop gives it a terminal
		s.say("! exec %s\nstderr 'top needs a terminal'", command)
		return
	}
	s.say("exec %s%s", command, flags)
	if verb == "stop" {
		s.job = false
		s.say("ends job%d 0", s.jobs)
	}
}

// endJob ends the job that still runs.
func (s *pageScript) endJob() {
	if s.job {
		s.ours("rlhost stop", "stop")
	}
}
