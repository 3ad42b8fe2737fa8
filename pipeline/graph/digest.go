package graph

import (
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rlhost/rlhost/core/files"
)

// Digest identifies the source of an environment: the SHA-256 of its file, or its name if it is built in, with the hashes of the modules
// around it and of its data; for environments of Python also the author's files. It is empty if there is no such file, which loading
// reports.
func (t *EnvTable) Digest(dir string, builtins []string) string {
	if t.Plugin != nil {
		digest := t.Plugin.Digest(dir)
		if digest == "" {
			return ""
		}
		return digest + t.ScriptsDigest(dir) + t.Plugin.File(dir) + t.WrapDigest(dir) // files next to a script belong to it
	}
	use, relative := t.Locate(dir, builtins)
	if !relative && !filepath.IsAbs(use) {
		return use + t.WrapDigest(dir) + t.DataDigest(dir)
	}
	sum, _ := files.SHA256(use)
	return sum + t.WrapDigest(dir) + t.DataDigest(dir)
}

// ScriptsDigest identifies the module of Python that MODULE:ENVIRONMENT names, where it is a file or a package in the pipeline's folder dir.
func (t *EnvTable) ScriptsDigest(dir string) string {
	module, _, _ := strings.Cut(t.Use, ":")
	if module == "" || filepath.Base(module) != module {
		return ""
	}
	if fileDigest(filepath.Join(dir, module+".py")) != "" {
		return scriptsDigest(dir)
	}
	return scriptsDigest(filepath.Join(dir, module))
}

// maxScripts bounds the files next to a script that are looked at.
const maxScripts = 200

// scriptsDigest identifies the scripts of Python in a folder.
func scriptsDigest(dir string) (digest string) {
	list, _ := filepath.Glob(filepath.Join(dir, "*.py")) // sorted; a folder with a bad pattern in its name has none
	for _, file := range list[:min(len(list), maxScripts)] {
		digest += fileDigest(file)
	}
	return digest
}

// Digest is the SHA-256 of the program, for a script of Python with the ones of the scripts next to it; of this program itself it is a word.
func (p *PluginTable) Digest(dir string) string {
	if p.Path == "" {
		return "self"
	}
	file := p.File(dir)
	if file == "" {
		return ""
	}
	sum := fileDigest(file)
	if sum != "" && filepath.Ext(file) == ".py" {
		sum += scriptsDigest(filepath.Dir(file))
	}
	return sum
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
