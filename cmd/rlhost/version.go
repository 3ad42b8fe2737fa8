package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/builtin"
)

type versionCommand struct{}

// Run prints what this program is.
func (c *versionCommand) Run(p *program) error {
	fmt.Fprintln(p.out, versionLine())
	return nil
}

func versionLine() string {
	return fmt.Sprintf("rlhost %s (%s) env ABI %v, %s, %s/%s, kernels %s", hostabi.Release, revision(), hostabi.EnvABI,
		runtime.Version(), runtime.GOOS, runtime.GOARCH, builtin.Kernels())
}

// revision is the commit that the program was built from, if the build knows it.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown revision"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	return "unknown revision"
}
