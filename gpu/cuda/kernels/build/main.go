// Build compiles the kernels of the CUDA backend: the sources next to it to the PTX that is committed. It needs Python, with
// which it installs NVIDIA's compiler into the project's own folder, and no GPU.
//
//	go run ./gpu/cuda/kernels/build          writes the PTX
//	go run ./gpu/cuda/kernels/build -check   compares it with the PTX that is there, assembles it for every architecture and
//	                                         holds the kernels to their registers
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/gpu/cuda/kernels"
)

const (
	sources     = "gpu/cuda/kernels"
	environment = ".cache/nvcc"
)

// packages are the compiler and what it needs: all of one release, so that the PTX has the same bytes everywhere.
var packages = []string{"nvidia-cuda-nvcc==" + kernels.Compiler, "nvidia-nvvm==13.0.88", "nvidia-cuda-crt==13.0.88",
	"nvidia-cuda-runtime==13.0.96", "nvidia-cuda-cccl==13.0.85"}

// architectures are the PTX's targets: Ampere, Ada, Hopper and Blackwell.
var architectures = []string{"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}

func main() {
	check := flag.Bool("check", false, "compare with the PTX that is there, and assemble it")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(check bool) error {
	bin, err := install()
	if err != nil {
		return err
	}
	for _, module := range kernels.Modules() {
		text, err := compile(bin, module)
		if err != nil {
			return err
		}
		file := filepath.Join(sources, module+".ptx")
		if !check {
			if err := os.WriteFile(file, text, 0o644); err != nil {
				return err
			}
			continue
		}
		if committed, err := os.ReadFile(file); err != nil || !bytes.Equal(text, committed) {
			return errors.Join(fmt.Errorf("%s is not what its sources compile to: make kernels", file), err)
		}
	}
	if !check {
		return nil
	}
	return assemble(bin)
}

// install returns the folder of the compiler's programs, with the compiler.
func install() (bin string, err error) {
	python := filepath.Join(environment, "bin", "python")
	list := filepath.Join(environment, "installed")
	want := strings.Join(packages, "\n") + "\n"
	if have, err := os.ReadFile(list); err != nil || string(have) != want {
		if err := command("python3", "-m", "venv", "--clear", environment); err != nil {
			return "", err
		}
		if err := command(python, append([]string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check"}, packages...)...); err != nil {
			return "", err
		}
		if err := os.WriteFile(list, []byte(want), 0o644); err != nil {
			return "", err
		}
	}
	found, err := filepath.Glob(filepath.Join(environment, "lib", "python3*", "site-packages", "nvidia", "cu13", "bin"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("%s: the compiler is not where it should be: %v", environment, found)
	}
	return found[0], nil
}

// command runs a program that has nothing to say if it succeeds.
func command(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

var (
	version = regexp.MustCompile(`(?m)^\.version .*$`)
	// Tells newer assemblers which bytes of a vector are used: a hint that this version of PTX does not have.
	hint = regexp.MustCompile(`(?m)^\s*\.pragma "used_bytes_mask [^"]*";\n`)
)

// compile returns the PTX of a module: the compiler's output, but with the version that drivers from CUDA 11.8 on take, and
// with our own heading, which names the sources.
func compile(bin, module string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "kernels")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	out := filepath.Join(folder, module+".ptx")
	source := filepath.Join(sources, module+".cu")
	if err := command(filepath.Join(bin, "nvcc"), "-std=c++17", "-O3", "-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true",
		"-gencode", fmt.Sprintf("arch=compute_%d,code=compute_%d", kernels.Capability, kernels.Capability), "-ptx", source, "-o", out); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	at := version.FindIndex(text)
	if at == nil {
		return nil, fmt.Errorf("%s: the compiler wrote no version", source)
	}
	sum, err := digest(module)
	if err != nil {
		return nil, err
	}
	heading := fmt.Sprintf("// Made from %s.cu by nvcc %s; DO NOT EDIT.\n// sources sha256:%x\n\n.version %s", module, kernels.Compiler, sum, kernels.Version)
	return append([]byte(heading), hint.ReplaceAll(text[at[1]:], nil)...), nil
}

// digest is that of all that a module is made from: its source and the headers.
func digest(module string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(sources, "*.cuh"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	sum := sha256.New()
	for _, file := range append(files, filepath.Join(sources, module+".cu")) {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		sum.Write(text)
	}
	return sum.Sum(nil), nil
}
