package project

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// probeTime is how long a compiler may take to show that it works: Zig builds its library then.
const probeTime = 2 * time.Minute

// Find returns the first compiler that works here, or nil.
func (l *Language) Find() (*Compiler, error) { return firstThatWorks(l.Compilers) }

// native returns the first compiler of programs of this machine, or nil.
func (l *Language) native() *Compiler {
	c, err := firstThatWorks(l.Native)
	if err != nil {
		return nil
	}
	return c
}

func firstThatWorks(list []Compiler) (*Compiler, error) {
	dir, err := os.MkdirTemp("", "rlhost-probe")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for i := range list {
		if list[i].works(dir) {
			return &list[i], nil
		}
	}
	return nil, nil
}

// works reports whether a compiler builds something of nothing, in a folder of its own.
func (c *Compiler) works(dir string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	line := strings.NewReplacer("{cc}", c.CC, "{probe}", filepath.Join(dir, "probe")).Replace(c.Probe)
	return exec.CommandContext(ctx, "sh", "-c", line).Run() == nil
}

// VersionHere is the first line of what the compiler says about itself; empty where it says nothing.
func (c *Compiler) VersionHere() string {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	out, _ := exec.CommandContext(ctx, "sh", "-c", c.Version).Output()
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(first)
}
