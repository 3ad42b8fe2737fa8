package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/gpu/cuda/kernels"
)

// usage is a kernel's use of a device.
type usage struct{ registers, stack, spilled, shared int }

// report matches a kernel's part of the assembler's output.
var report = regexp.MustCompile(`(?s)Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads.*?Used (\d+) registers([^\n]*)`)

var sharedMemory = regexp.MustCompile(`(\d+) bytes smem`)

// assemble assembles every module for every architecture, prints the kernels' usage and fails if it is too much.
func assemble(bin string) error {
	used := map[string]map[string]usage{} // by architecture and kernel
	for _, architecture := range architectures {
		used[architecture] = map[string]usage{}
		for _, module := range kernels.Modules() {
			out, err := exec.Command(filepath.Join(bin, "ptxas"), "-v", "-arch="+architecture, "-o", "/dev/null",
				filepath.Join(sources, module+".ptx")).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%s for %s: %w\n%s", module, architecture, err, out)
			}
			for _, m := range report.FindAllStringSubmatch(string(out), -1) {
				u := usage{registers: number(m[5]), stack: number(m[2]), spilled: number(m[3]) + number(m[4])}
				if s := sharedMemory.FindStringSubmatch(m[6]); s != nil {
					u.shared = number(s[1])
				}
				used[architecture][m[1]] = u
			}
		}
	}
	return hold(used)
}

func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		panic(err)
	}
	return n
}

// hold prints a table of the kernels' registers and returns an error for kernels beyond their bounds.
func hold(used map[string]map[string]usage) error {
	var failed error
	fmt.Printf("%-10s %-15s %s  shared  at most\n", "module", "registers of", strings.Join(architectures, "  "))
	for _, e := range kernels.Entries() {
		fmt.Printf("%-10s %-15s", e.Module, e.Name)
		for _, architecture := range architectures {
			u, ok := used[architecture][e.Name]
			fmt.Printf(" %*d ", len(architecture), u.registers)
			if !ok || u.registers > e.Registers || u.stack > 0 || u.spilled > 0 {
				failed = errors.Join(failed, fmt.Errorf("%s for %s: %+v, found %t: at most %d registers, nothing spilled, no stack", e.Name, architecture, u, ok, e.Registers))
			}
		}
		fmt.Printf(" %6d  %7d\n", used[architectures[0]][e.Name].shared, e.Registers)
	}
	return failed
}
