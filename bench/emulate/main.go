//go:build linux

// Emulate is the first process of an emulated machine: it runs test binaries, reports on the console and turns the
// machine off. See ../emulate.sh, which makes the machine.
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// list names the test binaries: one a line, path and arguments separated by spaces.
const list = "/tests/list"

func main() {
	verdict := "PASS"
	if err := run(); err != nil {
		fmt.Println("emulate:", err)
		verdict = "FAIL"
	}
	fmt.Println("emulate: verdict", verdict)
	// The console drops unsent output when the machine goes off.
	time.Sleep(200 * time.Millisecond)
	err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	fmt.Println("emulate: power off:", err)
	select {}
}

func run() error {
	if err := mount(); err != nil {
		return err
	}
	if err := printProcessor(); err != nil {
		return err
	}
	text, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	var failed []string
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 0 && !runTests(fields[0], fields[1:]) {
			failed = append(failed, fields[0])
		}
	}
	if failed != nil {
		return fmt.Errorf("failed: %s", strings.Join(failed, " "))
	}
	return nil
}

// mount makes the file systems that Go programs and their tests expect.
func mount() error {
	for _, m := range []struct{ kind, at string }{{"proc", "/proc"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}} {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	return nil
}

// printProcessor shows which processor the tests see: its name, and the flags that choose kernels.
func printProcessor() error {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		name, value, _ := strings.Cut(s.Text(), ":")
		switch strings.TrimSpace(name) {
		case "model name":
			fmt.Println("emulate: processor", strings.TrimSpace(value))
		case "flags":
			fmt.Println("emulate: flags", strings.Join(vectorFlags(value), " "))
		}
	}
	return s.Err()
}

func vectorFlags(flags string) []string {
	var vector []string
	for _, flag := range strings.Fields(flags) {
		if flag == "fma" || strings.HasPrefix(flag, "avx") {
			vector = append(vector, flag)
		}
	}
	return vector
}

// runTests reports whether the binary exited with 0.
func runTests(path string, args []string) bool {
	fmt.Println("emulate: run", path, strings.Join(args, " "))
	cmd := exec.Command(path, args...)
	cmd.Dir = "/tmp"
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	if err != nil {
		fmt.Println("emulate:", path, err)
	}
	return err == nil
}
