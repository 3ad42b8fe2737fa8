package graph

import (
	"os/exec"
	"path/filepath"

	"github.com/rlhost/rlhost/core/files"
)

// Digest identifies the source of an environment: the SHA-256 of its file, or its name if it is built in, with
// those of the modules around it. It is empty if there is no such file, which loading reports.
func (t *EnvTable) Digest(dir string, builtins []string) string {
	if t.Plugin != nil {
		return t.Plugin.Digest(dir) + t.WrapDigest(dir)
	}
	use, relative := t.Locate(dir, builtins)
	if !relative && !filepath.IsAbs(use) {
		return use + t.WrapDigest(dir)
	}
	return fileDigest(use) + t.WrapDigest(dir)
}

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
