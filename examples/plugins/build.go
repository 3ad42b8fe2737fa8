package plugins

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNoCompiler is returned where no compiler of a guest's language works: make tools.
var ErrNoCompiler = errors.New("no compiler of its language works here")

// Folder returns the guest's folder below examples/plugins.
func (g Guest) Folder() string { return path.Dir(g.Module) }

// Name returns a unique name of the guest, such as cartpole-c_scalar, or sanity-c_bandit in a folder of several
// environments.
func (g Guest) Name() string {
	file := strings.TrimSuffix(path.Base(g.Module), ".wasm")
	if strings.HasPrefix(g.Folder(), g.Env+"-") {
		return g.Folder() + strings.TrimPrefix(file, g.Env)
	}
	return g.Folder() + "_" + file
}

// Root returns the folder of the repository that the working folder is in.
func Root() (string, error) {
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(mod))), nil
}

// Path returns the place of a guest's module in the repository, whether or not it is committed.
func (g Guest) Path() (string, error) {
	root, err := Root()
	return filepath.Join(root, "examples/plugins", g.Module), err
}

// Build compiles the module and writes it to a file. It returns ErrNoCompiler if no compiler works, and ErrNoPackage if the sources of its
// package cannot be fetched.
func (g Guest) Build(file string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	if _, err := g.SourceHash(); err != nil { // so that cached results of tests depend on the sources
		return err
	}
	compiler, err := g.compiler()
	if err != nil {
		return err
	}
	if g.Package != nil {
		if err := g.Package.Unpack(); err != nil {
			return fmt.Errorf("%s: %w", g.Name(), err)
		}
	}
	if _, err := g.run(append(slices.Clone(compiler.Build), g.Flags...), compiler.Env, file); err != nil {
		return err
	}
	if compiler.Output == "" {
		return os.Chmod(file, 0o644) // linkers write programs
	}
	module, err := g.Path()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(module), g.fill(compiler.Output, "", "")))
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// Native returns what follows a compiler's name to make a program of this machine out of a guest in C or C++: it plays random actions.
func (g Guest) Native(program string) ([]string, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	if g.Package != nil {
		if err := g.Package.Unpack(); err != nil {
			return nil, fmt.Errorf("%s: %w", g.Name(), err)
		}
	}
	source, standard := g.Env+".c", "-std=c11"
	if g.Language.Name == "C++" {
		source, standard = g.Env+".cpp", "-std=c++20"
	}
	folder := filepath.Join(root, "examples/plugins", g.Folder())
	line := []string{standard, "-ffp-contract=off", "-I", filepath.Join(root, "sdk/c"), "-I", folder}
	if g.Package != nil {
		line = append(line, "-isystem", g.Package.dir(root))
	}
	return append(line, filepath.Join(folder, source), "-o", program, "-lm"), nil
}

// compiler returns the first of the language's compilers that works here.
func (g Guest) compiler() (Compiler, error) {
	dir, err := os.MkdirTemp("", "guest")
	if err != nil {
		return Compiler{}, err
	}
	defer os.RemoveAll(dir)
	for _, c := range g.Language.Compilers {
		if _, err := g.run(c.Probe, nil, filepath.Join(dir, "probe")); err == nil {
			return c, nil
		}
	}
	return Compiler{}, fmt.Errorf("%s: %w", g.Name(), ErrNoCompiler)
}

// run runs a command of a compiler in the guest's folder and returns what it prints.
func (g Guest) run(line, env []string, module string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	args := make([]string, len(line))
	for i, arg := range line {
		args[i] = g.fill(arg, root, module)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = filepath.Join(root, "examples/plugins", g.Folder()), append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %s: %w\n%s", g.Name(), strings.Join(args, " "), err, stderr.Bytes())
	}
	return string(out), nil
}

func (g Guest) fill(text, root, module string) string {
	fetched := ""
	if g.Package != nil {
		fetched = g.Package.dir(root)
	}
	return strings.NewReplacer("{root}", root, "{folder}", "examples/plugins/"+g.Folder(), "{env}", g.Env, "{module}", module, "{package}", fetched).Replace(text)
}

// SourceHash returns the SHA-256, in hexadecimal digits, of the files and the build lines that the module is made of.
func (g Guest) SourceHash() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, c := range g.Language.Compilers {
		fmt.Fprintf(sum, "%q %q %q\n", c.Build, c.Env, g.Flags)
	}
	if g.Package != nil {
		fmt.Fprintf(sum, "%s\n", g.Package.SHA256)
	}
	var files []string
	for _, pattern := range g.Language.Sources {
		found, err := filepath.Glob(g.fill(filepath.Join(root, pattern), root, ""))
		if err != nil {
			return "", fmt.Errorf("%s: %w", pattern, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		if strings.HasSuffix(strings.TrimSuffix(file, filepath.Ext(file)), "_test") {
			continue // of no module
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		sum.Write(text)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// Record returns the record of a committed module: the compiler that has built it, and the hash of its sources.
func (g Guest) Record() (string, error) {
	compiler, err := g.compiler()
	if err != nil {
		return "", err
	}
	version, err := g.run(compiler.Version, nil, "")
	if err != nil {
		return "", err
	}
	version, _, _ = strings.Cut(version, "\n")
	hash, err := g.SourceHash()
	return fmt.Sprintf("compiler %s\nsources %s\n", version, hash), err
}

// RecordPath returns where the record of a committed module is.
func (g Guest) RecordPath() (string, error) {
	module, err := g.Path()
	return strings.TrimSuffix(module, ".wasm") + ".txt", err
}
