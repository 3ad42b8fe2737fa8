package plugins_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/internal/testkit"
)

// The tutorial shows the corridor in each language, the references the lines that build guests and a component.
const (
	page       = "../../docs/start/environment.md"
	references = "../../docs/reference/sdk-"
)

// block is one fenced block of the page: a file to write, or lines for the shell if it has no name.
type block struct{ language, name, text string }

// readPage returns the blocks of each section of a page.
func readPage(t *testing.T, page string) map[string][]block {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string][]block{}
	fence := regexp.MustCompile("(?ms)^```(\\w+)(?: (\\S+))?\n(.*?)^```\n")
	for _, section := range strings.Split(string(data), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		for _, m := range fence.FindAllStringSubmatch(body, -1) {
			sections[title] = append(sections[title], block{m[1], m[2], m[3]})
		}
	}
	return sections
}

// ownDependency is that of an example in this repository; a reader adds one with cargo.
var ownDependency = regexp.MustCompile(`\[dependencies\]\nrlhost-env = .*\n\n`)

func TestPage_ShowsTheFilesOfTheExamples(t *testing.T) {
	sections := readPage(t, page)
	for _, g := range corridors() {
		shown := 0
		for _, b := range sections[g.Language.Name] {
			if b.name == "" {
				continue
			}
			want, err := os.ReadFile(filepath.Join(g.Folder(), b.name))
			if err != nil {
				t.Fatal(err)
			}
			if b.text != ownDependency.ReplaceAllString(string(want), "") {
				t.Errorf("%s differs from %s in section %s of %s", b.name, g.Folder(), g.Language.Name, page)
			}
			shown++
		}
		if shown == 0 {
			t.Errorf("%s shows no file in a section %s", page, g.Language.Name)
		}
	}
}

// corridors returns the guests that the page shows, one for each language.
func corridors() []plugins.Guest {
	return slices.DeleteFunc(plugins.Guests(), func(g plugins.Guest) bool { return g.Env != "corridor" })
}

// buildLine returns the build line with a label of the reference of C.
func buildLine(t *testing.T, label string) string {
	t.Helper()
	for _, b := range readPage(t, references+"c.md")["Build lines"] {
		if b.name == label {
			return b.text
		}
	}
	t.Fatalf("%sc.md shows no build line %q", references, label)
	return ""
}

// buildShown builds a guest in an empty folder by a line of the reference, and returns the folder; it skips the test where
// the compiler or the C library is missing.
func buildShown(t *testing.T, label, source string, env []string) string {
	t.Helper()
	testkit.Reads(t, source, "../../sdk/c/*.h", "../../sdk/c/*.hpp")
	line, dir, empty := buildLine(t, label), t.TempDir(), t.TempDir()
	name := "corridor.c"
	if strings.Contains(label, "c++") || strings.Contains(label, "class") {
		name = "corridor.cpp"
	}
	run := func(dir string) ([]byte, error) {
		cmd := exec.Command("sh", "-euc", line)
		cmd.Dir, cmd.Env = dir, env
		return cmd.CombinedOutput()
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	least := "void f(void) {}\n"
	if strings.Contains(label, "libc") {
		least = "#include <stdlib.h>\nvoid f(void) { free(malloc(1)); }\n"
	}
	if strings.Contains(label, "class") {
		least = "#include <vector>\nvoid f(std::vector<int> &v) { v.push_back(1); }\n"
	}
	for path, data := range map[string]string{filepath.Join(dir, name): string(text), filepath.Join(empty, name): least} {
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := run(dir)
	if err == nil {
		return dir
	}
	if least, err := run(empty); err != nil {
		t.Skipf("the compiler of %s is not here: make tools\n%s", label, least)
	}
	t.Fatalf("%s: %v\n%s", line, err, out)
	return ""
}

// TestPage_BuildLinesMakeGuests follows each build line of the page with programs that expose a wrong line: they use
// malloc next to the SDK's memory, have a static constructor that must run once, and overflow the stack.
func TestPage_BuildLinesMakeGuests(t *testing.T) {
	bin := tools(t)
	env := append(os.Environ(), "RLHOST="+root(t), "PATH="+bin+":"+root(t)+"/.venv/bin:"+os.Getenv("PATH"))
	rlhost := func(dir, command string) (string, error) {
		cmd := exec.Command("sh", "-euc", command)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for label, source := range map[string]string{
		"clang": "corridor-c/corridor.c", "zig": "corridor-c/corridor.c", "c++": "testdata/started.cpp",
		"zig-c++": "testdata/started.cpp", "libc": "testdata/heaps.c", "zig-libc": "testdata/heaps.c",
		"class": "courier-cpp/courier.cpp", "zig-class": "courier-cpp/courier.cpp",
	} {
		t.Run(label, func(t *testing.T) {
			dir := buildShown(t, label, source, env)
			if out, err := rlhost(dir, "rlhost check corridor.wasm"); err != nil || !strings.Contains(out, " 0 warnings, 0 failed") {
				t.Errorf("%s, built as the page says: %v\n%s", source, err, out)
			}
			if strings.Contains(label, "libc") {
				out, err := rlhost(dir, `printf 'rlhost = 1\n[run]\nname = "heaps"\nstop = { env_steps = 20000 }\n`+
					`[env.heaps]\nuse = "./corridor.wasm"\n[train]\npreset = "ppo"\nenv = "heaps"\n' >pipeline.toml; rlhost train`)
				if err != nil || !strings.Contains(out, "evaluation: return") {
					t.Errorf("training on it: %v\n%s", err, out)
				}
			}
			if strings.Contains(label, "class") {
				return // deep.c is not C++
			}
			dir = buildShown(t, label, "testdata/deep.c", env)
			if out, err := rlhost(dir, "rlhost check corridor.wasm"); err == nil || !strings.Contains(out, "out of bounds memory access in rl_made_step") {
				t.Errorf("a stack that overflows does not trap: %v\n%s", err, out)
			}
		})
	}
}

// TestPage_SaysWhatPoliciesTake checks the spaces that the page calls accepted and refused.
func TestPage_SaysWhatPoliciesTake(t *testing.T) {
	bin := tools(t)
	env := append(os.Environ(), "RLHOST="+root(t), "PATH="+bin+":"+os.Getenv("PATH"))
	corridor, err := os.ReadFile("corridor-c/corridor.c")
	if err != nil {
		t.Fatal(err)
	}
	const pipeline = "rlhost = 1\n[run]\nname = \"x\"\nstop = { env_steps = 100 }\n[env.x]\nuse = \"./corridor.wasm\"\n[train]\npreset = \"ppo\"\nenv = \"x\"\n"
	for space, want := range map[string]string{"RL_BOX(RL_U8, 0, 255, 4)": "ok", "RL_BOX(9, 0, 1, 1)": "error[E018]"} {
		source := filepath.Join(t.TempDir(), "other.c")
		other := bytes.Replace(corridor, []byte(".obs = RL_BOX(RL_F32, 0, 1, 1)"), []byte(".obs = "+space), 1)
		if err := os.WriteFile(source, other, 0o644); err != nil {
			t.Fatal(err)
		}
		dir := buildShown(t, "clang", source, env)
		if err := os.WriteFile(filepath.Join(dir, "pipeline.toml"), []byte(pipeline), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(filepath.Join(bin, "rlhost"), "validate")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); (err == nil) != (want == "ok") || !strings.Contains(string(out), want) {
			t.Errorf("%s: validate: %v, want %s\n%s", space, err, want, out)
		}
	}
}

// TestReference_TheNativeLineRunsTheEnvironment: the same source is a program, with sanitizers.
func TestReference_TheNativeLineRunsTheEnvironment(t *testing.T) {
	testkit.Needs(t, "cc")
	dir := t.TempDir()
	source, err := os.ReadFile("corridor-c/corridor.c")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "corridor.c"), source, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-euc", buildLine(t, "native"))
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "RLHOST="+root(t))
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "episodes") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestExamples_AreInTheTable: examples/README.md has every example, and its build lines build one.
func TestExamples_AreInTheTable(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`([^` ]+)`").FindAllStringSubmatch(string(text), -1) {
		named[m[1]] = true
	}
	var names []string
	for _, pattern := range []string{"*/*.c", "*/main.go", "*/src/*.rs", "*/*.py", "*/*.zig", "*/*.ts", "../demos/*/README.md", "../pipelines/*.toml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		for _, file := range found {
			switch name := strings.Split(strings.TrimPrefix(file, "../demos/"), "/")[0]; {
			case strings.HasSuffix(file, ".toml"):
				names = append(names, filepath.Base(file))
			case name != "build" && name != "golden" && name != "testdata":
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		if !named[name] {
			t.Errorf("examples/README.md lacks %s", name)
		}
	}
	lines := regexp.MustCompile("`BUILD ([^`]+)`").FindAllStringSubmatch(string(text), -1)
	for _, m := range lines {
		if !slices.ContainsFunc(plugins.Guests(), func(g plugins.Guest) bool { return strings.HasPrefix(g.Module, m[1]+"/") }) {
			t.Errorf("`BUILD %s` builds no guest", m[1])
		}
	}
	if len(lines) == 0 {
		t.Error("examples/README.md builds nothing")
	}
}

func TestPage_HeaderShowsTheLineOfThePage(t *testing.T) {
	header, err := os.ReadFile("../../sdk/c/rl_env.h")
	if err != nil {
		t.Fatal(err)
	}
	line := buildLine(t, "clang")
	if want := strings.NewReplacer("$RLHOST/", "", "corridor", "walk").Replace(line); !strings.Contains(string(header), want) {
		t.Errorf("rl_env.h does not show %s", want)
	}
	if !slices.Contains(readPage(t, page)["C"], block{language: "sh", text: line}) {
		t.Errorf("%s does not show %s", page, line)
	}
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// tools returns a folder with rlhost, and with clang and clang++ under these names where they are called clang-19.
func tools(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(testkit.Needs(t, "go"), "build", "-o", filepath.Join(dir, "rlhost"), "./cmd/rlhost")
	cmd.Dir = root(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"clang", "clang++"} {
		if compiler, err := exec.LookPath(name + "-19"); err == nil {
			if err := os.Symlink(compiler, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}
