package dev

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Codes of builds that made nothing.
const (
	CodeBuild   = "E152" // the command failed
	CodeTimeout = "E153" // it did not end in time
	CodeNothing = "E154" // it did not write the file
)

// maxOutput bounds the lines of a build that are shown: its first errors are the ones to look at.
const maxOutput = 4 << 10

// ending is how long a build's processes may take to end once they are asked to.
const ending = time.Second

// built is the outcome of one build.
type built struct {
	output string // path of what it makes; empty where that is no file
	took   time.Duration
	other  bool // the file has another content than before
}

// buildError is a build that made nothing.
type buildError struct {
	code, reason, help string
	output             string // of the command
}

func (e *buildError) Error() string {
	text := fmt.Sprintf("error[%s]: %s", e.code, e.reason)
	if out := strings.TrimRight(e.output, "\n"); out != "" {
		text += "\n" + out
	}
	if e.help != "" {
		text += "\n  help: " + e.help
	}
	return text
}

// run builds in a folder. The error is a *buildError, or ctx's.
func run(ctx context.Context, b *graph.Build, dir string) (built, error) {
	before, _ := files.SHA256(b.Output) // empty for a file that is not there yet
	began := time.Now()
	out, err := execute(ctx, b, dir)
	r := built{output: b.Output, took: time.Since(began)}
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return r, &buildError{code: CodeTimeout, reason: fmt.Sprintf("%s: the build of %s did not end within %v: %s", b.At, b.Of, b.Timeout, b.Command),
			help: fmt.Sprintf("look for what it waits for, or give it longer: build_timeout = %q", (2 * b.Timeout).String()), output: out}
	case err != nil:
		return r, &buildError{code: CodeBuild, reason: fmt.Sprintf("%s: the build of %s failed (%v): %s", b.At, b.Of, err, b.Command), output: out}
	case b.Output == "":
		r.other = true // the run finds out
		return r, nil
	}
	sum, err := files.SHA256(b.Output)
	if err != nil {
		return r, &buildError{code: CodeNothing, reason: fmt.Sprintf("%s: the build of %s ended well and did not write %s: %s", b.At, b.Of, filepath.Base(b.Output), b.Command),
			help: "it runs in the folder of the pipeline file; let it write " + b.Output, output: out}
	}
	r.other = sum != before
	return r, nil
}

// execute runs a build's command, and returns what it prints, at most maxOutput of it. Where it does not end in time, its whole process
// group is killed: a shell leaves children behind.
func execute(ctx context.Context, b *graph.Build, dir string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, b.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", b.Command)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = ending
	out := &head{}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), "TERM=dumb")
	err := cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out.String(), err
}

// head keeps the beginning of what is written to it.
type head struct {
	kept bytes.Buffer
	more bool
}

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	room := maxOutput - h.kept.Len()
	h.more = h.more || len(p) > room
	h.kept.Write(p[:min(len(p), room)])
	return len(p), nil
}

func (h *head) String() string {
	if h.more {
		return h.kept.String() + "\n…"
	}
	return h.kept.String()
}
