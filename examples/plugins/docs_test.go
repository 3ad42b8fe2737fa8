package plugins_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const page = "../../docs/your-own-environment.md"

// block is one fenced block of the page: a file to write, or lines for the shell if it has no name.
type block struct{ language, name, text string }

// readPage returns the blocks of each section of the page.
func readPage(t *testing.T) map[string][]block {
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

func TestPage_ShowsTheFilesOfTheExamples(t *testing.T) {
	sections, shown := readPage(t), 0
	for title, guest := range map[string]string{"C": "corridor-c", "Go": "corridor-go", "Rust": "corridor-rust"} {
		for _, b := range sections[title] {
			if b.name == "" {
				continue
			}
			want, err := os.ReadFile(filepath.Join(guest, b.name))
			if err != nil {
				t.Fatal(err)
			}
			if b.text != string(want) {
				t.Errorf("%s differs from %s in section %s of %s", b.name, guest, title, page)
			}
			shown++
		}
	}
	if shown != 4 {
		t.Errorf("the page shows %d files, want 4", shown)
	}
}

// follow does in an empty folder what a section of the page says, and returns what its commands print.
func follow(t *testing.T, dir string, blocks []block, env []string) string {
	t.Helper()
	var log strings.Builder
	for _, b := range blocks {
		if b.name != "" {
			path := filepath.Join(dir, b.name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			text := strings.ReplaceAll(b.text, `"../../../sdk/rust"`, `"`+root(t)+`/sdk/rust"`)
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if b.language != "sh" {
			continue
		}
		cmd := exec.Command("sh", "-euc", b.text)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", b.text, err, out)
		}
		log.Write(out)
	}
	return log.String()
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// tools returns a folder with rlhost, and with clang under that name where it is called clang-19.
func tools(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(needs(t, "go"), "build", "-o", filepath.Join(dir, "rlhost"), "./cmd/rlhost")
	cmd.Dir = root(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if clang, err := exec.LookPath("clang-19"); err == nil {
		if err := os.Symlink(clang, filepath.Join(dir, "clang")); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPage_LeadsToATrainedPolicy(t *testing.T) {
	sections, bin := readPage(t), tools(t)
	env := append(os.Environ(), "RLHOST="+root(t), "PATH="+bin+":"+os.Getenv("PATH"), "GOFLAGS=", "CARGO_NET_OFFLINE=true")
	compilers := map[string]string{"C": "clang", "Go": "go", "Rust": "cargo"}
	for title, compiler := range compilers {
		t.Run(title, func(t *testing.T) {
			if title != "C" {
				needs(t, compiler)
			} else if _, err := os.Stat(filepath.Join(bin, "clang")); err != nil {
				needs(t, "clang")
			}
			dir := t.TempDir()
			follow(t, dir, sections[title], env)
			got := follow(t, dir, sections["Train it"], env)
			for _, want := range []string{" 0 failed", "target reached", "evaluation: return"} {
				if !strings.Contains(got, want) {
					t.Errorf("the commands of the page do not print %q but\n%s", want, got)
				}
			}
		})
	}
}
