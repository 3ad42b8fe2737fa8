package graph

import (
	"os/exec"
	"path/filepath"

	"github.com/rlhost/rlhost/core/files"
)

// Digest is the SHA-256 of the program or script; of this program itself it is a word.
func (p *PluginTable) Digest(dir string) string {
	if p.Path == "" {
		return "self"
	}
	file := p.File(dir)
	if file == "" {
		return ""
	}
	return fileDigest(file)
}

// File returns the absolute path of the program or script that a file in dir names; empty where it is this program, or is not found.
func (p *PluginTable) File(dir string) string {
	file := p.Path
	var err error
	switch {
	case file == "":
		return ""
	case filepath.IsAbs(file):
	case filepath.Base(file) != file:
		file = filepath.Join(dir, file)
	default:
		file, err = exec.LookPath(file)
	}
	if err == nil {
		file, err = filepath.Abs(file)
	}
	if err != nil {
		return ""
	}
	return file
}

// fileDigest is the SHA-256 of a file, or empty if it cannot be read.
func fileDigest(path string) string {
	sum, err := files.SHA256(path)
	if err != nil {
		return ""
	}
	return sum
}
