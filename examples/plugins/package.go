package plugins

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoPackage is returned where the sources of a package cannot be fetched.
var ErrNoPackage = errors.New("a package of sources cannot be fetched")

// Package is a source package of PyPI with files that a build needs and that are not in the repository.
type Package struct {
	Name, Version string
	Archive       string // the name of its file
	SHA256        string
	Files         []string // patterns of what is unpacked, as tar reads them
}

// Box2D returns the physics of Gymnasium's environments: its C++ sources in the newest package that has them. Box2D's licence is zlib's.
func Box2D() *Package {
	return &Package{
		Name: "box2d", Version: "2.3.2", Archive: "Box2D-2.3.2.tar.gz",
		SHA256: "d1557dffdf9c1d6c796ec5df53e3d93227bb026c14b8411d22c295edaa2fb225",
		Files:  []string{"*.h", "*.cpp", "*License.txt"},
	}
}

// backend answers pip's question for the metadata of a source package in the place of the package's own program, which would run, and may
// want more packages.
const backend = `import os
import sys
def prepare_metadata_for_build_wheel(folder, settings=None):
    name, version = os.environ["PACKAGE"].split("==")
    to = f"{name.replace('-', '_')}-{version}.dist-info"
    os.mkdir(os.path.join(folder, to))
    with open(os.path.join(folder, to, "METADATA"), "w") as f:
        f.write(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return to
__legacy__ = sys.modules[__name__]
`

// Dir returns the folder of the repository's cache that Unpack fills.
func (p *Package) Dir() (string, error) {
	root, err := Root()
	return p.dir(root), err
}

func (p *Package) dir(root string) string {
	return filepath.Join(root, ".cache/packages", p.Name+"-"+p.Version)
}

// Unpack fetches the package with pip, where no build of this user has done so before, compares its hash, and unpacks it into Dir. It
// returns ErrNoPackage where it cannot be fetched.
func (p *Package) Unpack() error {
	dir, err := p.Dir()
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	archive, err := p.fetch()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), "part")
	if err != nil {
		return err
	}
	defer os.RemoveAll(part)
	tar := append([]string{"-C", part, "--strip-components=1", "-xzf", archive, "--wildcards"}, p.Files...)
	if out, err := exec.Command("tar", tar...).CombinedOutput(); err != nil {
		return fmt.Errorf("tar %s: %w\n%s", archive, err, out)
	}
	if err := os.Rename(part, dir); err != nil && !errors.Is(err, os.ErrExist) { // another build may have been faster
		return err
	}
	return os.Chmod(dir, 0o755)
}

// fetch returns the path of the archive, whose hash is right.
func (p *Package) fetch() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	archive := filepath.Join(cache, "rlhost-packages", p.Archive)
	if p.whole(archive) == nil {
		return archive, nil
	}
	if err := p.download(filepath.Dir(archive)); err != nil {
		return "", err
	}
	return archive, p.whole(archive)
}

// whole says whether a file is the package that the build is written for.
func (p *Package) whole(archive string) error {
	data, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != p.SHA256 {
		return fmt.Errorf("%s has SHA-256 %s, want %s: remove it, and see who has changed %s %s", archive, got, p.SHA256, p.Name, p.Version)
	}
	return nil
}

// download runs pip, as make tools has installed it.
func (p *Package) download(to string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	stub, err := os.MkdirTemp("", "backend")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stub)
	if err := os.Mkdir(filepath.Join(stub, "setuptools"), 0o755); err != nil {
		return err
	}
	for name, text := range map[string]string{"__init__.py": "", "build_meta.py": backend} {
		if err := os.WriteFile(filepath.Join(stub, "setuptools", name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	pip := []string{"-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", "--dest", to, p.Name + "==" + p.Version}
	cmd := exec.Command(filepath.Join(root, ".venv/bin/python"), pip...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+stub, "PACKAGE="+p.Name+"=="+p.Version)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s %s: make tools, and look at the network: %w\n%s", ErrNoPackage, p.Name, p.Version, err, strings.TrimSpace(string(out)))
	}
	return nil
}
