package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/builtin"
)

type versionCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints the version of this program.
func (c *versionCommand) Run(p *program) error {
	if c.JSON {
		return p.encode(thisBuild())
	}
	fmt.Fprintln(p.out, versionLine())
	return nil
}

// build is what this program is.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	EnvABI   string `json:"env_abi"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	Kernels  string `json:"kernels"`
}

func thisBuild() build {
	return build{hostabi.Release, revision(), fmt.Sprint(hostabi.EnvABI), runtime.Version(), runtime.GOOS, runtime.GOARCH, builtin.Kernels()}
}

func versionLine() string {
	b := thisBuild()
	return fmt.Sprintf("rlhost %s (%s) env ABI %s, %s, %s/%s, kernels %s", b.Version, b.Revision, b.EnvABI, b.Go, b.OS, b.Arch, b.Kernels)
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
