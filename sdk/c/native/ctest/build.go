package ctest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Mode says what a program is built with.
type Mode int

// Modes.
const (
	Plugin    Mode = iota // the whole library: the program calls rlh_serve
	Library               // without the control connection, and so without libnghttp2
	Sanitized             // as Library, under the sanitizers of addresses and undefined behaviour
)

// Build compiles C files with the library, warnings being errors, and returns the program. Paths are relative to the
// test's folder. It skips the test where there is no C compiler, and fails it with the command that installs
// libnghttp2 where that is missing.
func Build(t testing.TB, mode Mode, sources ...string) string {
	t.Helper()
	return BuildWith(t, Compiler(t), mode, sources...)
}

// BuildWith is Build with a certain compiler.
func BuildWith(t testing.TB, compiler string, mode Mode, sources ...string) string {
	t.Helper()
	library := Sources(t)
	program := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(sources[0]), ".c"))
	args := []string{"-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"}
	libraries := []string{"-lpthread"}
	switch mode {
	case Plugin:
		needNghttp2(t, compiler)
		libraries = append(libraries, "-lnghttp2")
	case Library:
		args = append(args, "-DRLH_NO_CONTROL")
	case Sanitized:
		args = append(args, "-DRLH_NO_CONTROL", "-g", "-O1", "-fno-sanitize-recover=all")
		if compiles(t, compiler, "int main(void) { return 0; }", "-fsanitize=address,undefined") {
			args = append(args, "-fsanitize=address,undefined")
		}
	}
	args = append(append(append(append(args, "-o", program), sources...), library...), libraries...)
	if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", compiler, strings.Join(args, " "), err, out)
	}
	for _, file := range sources {
		read(t, file)
	}
	return program
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
	_, here, _, _ := runtime.Caller(0)
	dir := filepath.Dir(filepath.Dir(here))
	files, err := filepath.Glob(filepath.Join(dir, "*.c"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the library's files in %s: %v", dir, err)
	}
	headers, _ := filepath.Glob(filepath.Join(dir, "*.h")) // the pattern has been used just now
	for _, file := range append(headers, files...) {
		read(t, file)
	}
	return files
}

// read makes the test's cached result depend on a file that only the compiler opens.
func read(t testing.TB, file string) {
	t.Helper()
	if _, err := os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
}

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
