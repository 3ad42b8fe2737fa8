package main

import (
	"errors"
	"fmt"
	"os/exec"
)

// commandLine is the page that the program prints about itself. A test of cmd/rlhost compares it, without another build.
func commandLine(root string) (string, error) {
	cmd := exec.Command("go", "run", "./cmd/rlhost", "man", "--markdown")
	cmd.Dir = root
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	return string(out), err
}
