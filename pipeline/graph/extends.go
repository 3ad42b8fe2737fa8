package graph

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/files"
)

// codeExtends is the code of files that a pipeline is made of and that cannot be read.
const codeExtends = "E084"

// extendsKey names the file that a file extends.
const extendsKey = "extends"

// maxExtends bounds how many files a pipeline extends, one after the other.
const maxExtends = 8

// fileReader reads the files that a pipeline is made of.
type fileReader struct{ check *checker }

// readFile reads a pipeline file with all that it extends, merged; nil if one of them cannot be read.
func (r *fileReader) readFile(file string, src []byte) *node {
	root := r.readTexts(newSource(file, bom(string(src)), 0))
	if root == nil {
		return nil
	}
	if r.check.expanded {
		r.check.graph.origin.readComment(string(src))
	}
	r.check.format(root)
	return r.extended(root, r.check.graph.Dir, []string{file})
}

// readTexts reads a source, with the variables in its texts.
func (r *fileReader) readTexts(src *source) *node {
	root := r.check.read(src)
	if root != nil {
		(&inserter{r.check}).insert(root)
	}
	return root
}

// extended merges a file over the file that its key extends names, which is relative to dir. chain are the files up to this one.
func (r *fileReader) extended(root *node, dir string, chain []string) *node {
	n := root.at(extendsKey)
	if n == nil {
		if len(chain) > 1 {
			r.check.graph.origin.files = chain
		}
		return root
	}
	root.remove(extendsKey)
	path, ok := n.text()
	if !ok {
		r.check.wrong(n, extendsKey, `the path of a file, such as "base.toml"`, "")
		return root
	}
	file := files.In(dir, path)
	text, ok := r.readNext(n, chain, file)
	if !ok {
		return nil
	}
	base := r.readTexts(newSource(file, bom(text), len(chain)))
	if base == nil {
		return nil
	}
	r.check.format(base)
	base = r.extended(base, filepath.Dir(file), append(chain, file))
	if base == nil {
		return nil
	}
	movePaths(base, filepath.Dir(file), dir)
	return overlay(base, root)
}

// readNext returns the text of a file that a value names and that follows the files and presets of a chain; ok is false after reporting
// that it is one of them, one too many, or cannot be read.
func (r *fileReader) readNext(n *node, chain []string, file string) (text string, ok bool) {
	switch {
	case slices.ContainsFunc(chain, func(other string) bool { return sameFile(other, file) }):
		r.check.Add(codeExtends, n.val, "", "the files derive from each other: %s", strings.Join(append(chain, file), " → "))
		return "", false
	case len(chain) > maxExtends:
		r.check.Add(codeExtends, n.val, "", "%s is one file too many: at most %d derive from each other", file, maxExtends)
		return "", false
	}
	src, err := r.check.readAny(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.check.Add(codeExtends, n.val, "a path is relative to the file that it is in", "%s: no such file", file)
	case errors.Is(err, files.ErrTooLarge):
		r.check.Add(codeExtends, n.val, "a pipeline has a few kilobytes; is it the right file?", "%s has more than %d bytes", file, MaxBytes)
	case err != nil:
		r.check.Add(codeExtends, n.val, "", "%s cannot be read: %v", file, err)
	}
	return string(src), err == nil
}

// sameFile reports whether two paths lead to one place.
func sameFile(a, b string) bool {
	x, err := filepath.Abs(a)
	y, err2 := filepath.Abs(b)
	return err == nil && err2 == nil && x == y
}

// movePaths rewrites the relative paths of a file in one folder for a file in another.
func movePaths(root *node, from, to string) {
	if sameFile(from, to) {
		return
	}
	move := func(n *node, isPath func(string) bool) {
		path, ok := n.text()
		if !ok || path == "" || filepath.IsAbs(path) || !isPath(path) {
			return
		}
		moved, err := files.Relative(to, filepath.Join(from, path))
		if err != nil {
			return // which needs a working directory that is gone
		}
		if !strings.HasPrefix(moved, "..") {
			moved = "." + string(filepath.Separator) + moved
		}
		n.value = moved
	}
	each := func(section string, fn func(table *node)) {
		for _, table := range root.at(section).children() {
			fn(table)
		}
	}
	each("env", func(table *node) {
		move(table.at("use"), func(use string) bool {
			_, _, native := SplitUse(use)
			return !native && isPath(use)
		})
		if wrap := table.at("wrap"); wrap != nil {
			for _, w := range wrap.items {
				move(w.at(env.KeyUse), anyPath)
			}
		}
	})
	each("component", func(table *node) { move(table.at("use"), anyPath) })
	each("plugin", func(table *node) {
		move(table.at("path"), func(path string) bool { return filepath.Base(path) != path })
	})
	each("policy", func(table *node) { move(table.at("from"), isStoredPath) })
	move(root.at("train").at("preset"), isPresetPath)
}

func anyPath(string) bool { return true }

// isStoredPath reports whether a policy's key from is a path, and not the name of a run.
func isStoredPath(from string) bool {
	return strings.HasPrefix(from, "./") || strings.HasPrefix(from, "../") || strings.HasSuffix(from, SuffixTensors)
}
