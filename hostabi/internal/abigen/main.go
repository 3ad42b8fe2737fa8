// Abigen writes the views of package hostabi in other languages: for environments in WebAssembly sdk/c/rl_abi.h and sdk/rust/src/abi.rs,
// for components in WebAssembly sdk/c/rl_component_abi.h and sdk/rust/src/component_abi.rs, for native plugins sdk/c/native/rlhost_abi.h,
// for other languages the views of the templates sdk/LANGUAGE/*.tmpl, the release that the package for Python belongs to, and the tables of
// docs/reference/env-abi.md and docs/reference/component-abi.md.
//
//	go run ./hostabi/internal/abigen
//
// Constants, comments and parameter names come from hostabi's source, sizes and offsets from its compiled
// types, so that the views cannot say anything that the host does not. The test of this package fails when a
// committed view is stale.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rlhost/rlhost/hostabi"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "abigen:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	views, err := generate(root)
	if err != nil {
		return err
	}
	for _, v := range views {
		if err := os.WriteFile(filepath.Join(root, v.path), []byte(v.text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// view is one generated file.
type view struct {
	path string // relative to the module's root
	text string
}

// generate renders every view from the module in root.
func generate(root string) ([]view, error) {
	m, err := load(filepath.Join(root, "hostabi"), envABI())
	if err != nil {
		return nil, err
	}
	component, err := load(filepath.Join(root, "hostabi"), componentABI())
	if err != nil {
		return nil, err
	}
	native, err := hostView(root)
	if err != nil {
		return nil, err
	}
	page, err := renderPage(root, envPage, m)
	if err != nil {
		return nil, err
	}
	more, err := renderPage(root, componentPage, component)
	if err != nil {
		return nil, err
	}
	views, err := templated(root, m, component)
	if err != nil {
		return nil, err
	}
	return append(views, []view{
		{envPage, page},
		{componentPage, more},
		{"sdk/c/rl_abi.h", renderC(m, headC)},
		{"sdk/c/rl_component_abi.h", renderC(component, headComponentC)},
		{"sdk/rust/src/abi.rs", renderRust(m, headRust)},
		{"sdk/rust/src/component_abi.rs", renderRust(component, headComponentRust)},
		{"sdk/c/native/rlhost_abi.h", native},
		{"sdk/python/rlhost/version.py", renderPython(hostabi.Release)},
	}...), nil
}

// renderPython writes the release in the form that Python's packages have: 0.1.0-dev is 0.1.0.dev0.
func renderPython(release string) string {
	number, suffix, _ := strings.Cut(release, "-")
	if suffix != "" {
		number += "." + suffix + "0"
	}
	return `"""The release that the package belongs to. Written by hostabi/internal/abigen."""` +
		"\n\n__version__ = \"" + number + "\"\nRELEASE = \"" + release + "\"  # as the program rlhost writes it\n"
}

// moduleRoot returns the nearest folder, from the working folder upwards, that holds go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod above the working folder")
		}
		dir = parent
	}
}
