package graph

import (
	"os/exec"
	"path/filepath"

	"github.com/rlhost/rlhost/core/files"
)

// Digest is the SHA-256 of the program or script; of this program itself it is a word.
func (p *PluginTable) Digest(dir string) string {
	switch {
	case p.Path == "":
		return "self"
	case filepath.IsAbs(p.Path):
		return fileDigest(p.Path)
	case filepath.Base(p.Path) != p.Path:
		return fileDigest(filepath.Join(dir, p.Path))
	}
	found, err := exec.LookPath(p.Path)
	if err != nil {
		return ""
	}
	return fileDigest(found)
}

// fileDigest is the SHA-256 of a file, or empty if it cannot be read.
func fileDigest(path string) string {
	sum, err := files.SHA256(path)
	if err != nil {
		return ""
	}
	return sum
}
