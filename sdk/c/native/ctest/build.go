package ctest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Mode is how a program is built.
type Mode int

// Modes.
const (
	Plugin          Mode = iota // the whole library: the program calls rlh_serve
	Library                     // without the control connection, and so without libnghttp2
	Sanitized                   // as Library, with the address and undefined behaviour sanitizers
	SanitizedPlugin             // as Plugin, with these
	Stepped                     // as Library, with testdata/steps.h before each file: the program has the function step
)

// Build compiles C files with the library, warnings being errors, and returns the program. Paths are relative to the
// test's folder. A program of the same sources is built once and kept in .cache of the module. It skips the test where
// there is no C compiler, and fails it with the command that installs libnghttp2 where that is missing.
func Build(t testing.TB, mode Mode, sources ...string) string {
	t.Helper()
	compiler := Compiler(t)
	args := []string{"-std=c11", "-I", libraryDir(), "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"}
	libraries := []string{"-lpthread"}
	if mode == Plugin || mode == SanitizedPlugin {
		needNghttp2(t, compiler)
		libraries = append(libraries, "-lnghttp2")
	} else {
		args = append(args, "-DRLH_NO_CONTROL")
	}
	if mode == Stepped {
		args = append(args, "-include", filepath.Join(libraryDir(), "testdata", "steps.h"))
	}
	if mode == Sanitized || mode == SanitizedPlugin {
		args = append(args, "-g", "-O1", "-fno-sanitize-recover=all")
		if compiles(t, compiler, "int main(void) { return 0; }", "-fsanitize=address,undefined") {
			args = append(args, "-fsanitize=address,undefined")
		}
	}
	args = append(append(append(args, sources...), Sources(t)...), libraries...)
	program := filepath.Join(cache(t), key(t, compiler, args, sources), strings.TrimSuffix(filepath.Base(sources[0]), ".c"))
	if _, err := os.Stat(program); err == nil {
		return program
	}
	made := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command(compiler, append(args, "-o", made)...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", compiler, strings.Join(args, " "), err, out)
	}
	if err := install(made, program); err != nil {
		t.Fatal(err)
	}
	return program
}

// key hashes the inputs of a program: the compiler, its arguments, and all C files and headers.
func key(t testing.TB, compiler string, args, sources []string) string {
	t.Helper()
	h := sha256.New()
	version, err := exec.Command(compiler, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(h, "%s\n%q\n", version, args)
	files, _ := filepath.Glob(filepath.Join(libraryDir(), "*.[ch]")) // the pattern is right
	for _, source := range sources {
		beside, _ := filepath.Glob(filepath.Join(filepath.Dir(source), "*.[ch]"))
		files = append(files, beside...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(h, "%s %d\n%s", file, len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// cache returns the folder of programs, after removing those unused for a week.
func cache(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(libraryDir(), "..", "..", "..", ".cache", "ctest")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 7*24*time.Hour {
			_ = os.RemoveAll(filepath.Join(dir, e.Name())) // another process may be doing the same
		}
	}
	return dir
}

// install puts a program into the cache in one step, so that no test runs half a program.
func install(made, program string) error {
	text, err := os.ReadFile(made)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		return err
	}
	half := fmt.Sprintf("%s.%d", program, os.Getpid())
	if err := os.WriteFile(half, text, 0o755); err != nil {
		return err
	}
	return os.Rename(half, program)
}

// Compiler returns the C compiler: $CC, or cc.
func Compiler(t testing.TB) string {
	t.Helper()
	name := os.Getenv("CC")
	if name == "" {
		name = "cc"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no C compiler: %v (apt-get install gcc)", err)
	}
	return path
}

// Sources returns the files of the library.
func Sources(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(libraryDir(), "*.c"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the library's files in %s: %v", libraryDir(), err)
	}
	return files
}

// libraryDir is sdk/c/native. go list names it where -trimpath has taken folders out of the program, too.
var libraryDir = sync.OnceValue(func() string {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/rlhost/rlhost/sdk/c/native/ctest").Output()
	if err != nil {
		panic(fmt.Sprintf("the folder of sdk/c/native: %v", err))
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
})

func needNghttp2(t testing.TB, compiler string) {
	t.Helper()
	if !compiles(t, compiler, "#include <nghttp2/nghttp2.h>\nint main(void) { return 0; }", "-lnghttp2") {
		t.Fatal("plugins in C need libnghttp2: apt-get install libnghttp2-dev")
	}
}

// compiles reports whether a small program can be built with a flag.
func compiles(t testing.TB, compiler, program, flag string) bool {
	t.Helper()
	cmd := exec.Command(compiler, "-x", "c", "-", flag, "-o", filepath.Join(t.TempDir(), "probe"))
	cmd.Stdin = strings.NewReader(program)
	return cmd.Run() == nil
}
