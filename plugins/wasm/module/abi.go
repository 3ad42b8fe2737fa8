package module

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/meter"
)

// ABI is the contract between the host and the modules of one kind.
type ABI struct {
	name, one      string // what such modules are of, and one of these
	place          string // what to do with such a module elsewhere
	page           string // that specifies it
	marker, prefix string // of this version, and of any
	older          string // prefix of the markers of the candidates for version 1
	version        hostabi.Version
	exports        []hostabi.Function
	imports        string // module of the host's functions
	grants         []string
}

// Environments and Components are the kinds.
var (
	Environments = &ABI{
		name: "environments", one: "environment", place: `name it as an environment: use = "…" in [env.NAME]`, page: "docs/reference/env-abi.md",
		marker: hostabi.ExportABI, prefix: hostabi.ExportABIPrefix, older: "rl_abi_v", version: hostabi.EnvABI,
		exports: hostabi.EnvExports(), imports: hostabi.ImportModule, grants: []string{GrantClock, GrantLog, GrantMetric},
	}
	Components = &ABI{
		name: "components", one: "component", place: `name it as a component: runtime = "wasm" and use = "…" in [component.NAME]`, page: "docs/reference/component-abi.md",
		marker: hostabi.ExportComponentABI, prefix: hostabi.ExportComponentPrefix, older: "rl_component_v1rc",
		version: hostabi.ComponentABI,
		exports: hostabi.ComponentExports(), imports: hostabi.ImportComponent,
		grants: []string{GrantLog, GrantMetric, GrantStop},
	}
)

// abiOf returns the kind of a module: environments if it has no marker.
func abiOf(m *meter.Module) *ABI {
	if Components.marked(m) {
		return Components
	}
	return Environments
}

// marked reports whether a module has the marker of any version.
func (a *ABI) marked(m *meter.Module) bool {
	_, ok := export(m, a.marker)
	return ok || a.future(m) != 0 || a.past(m)
}

// past reports whether a module is built for a candidate of the ABI alone.
func (a *ABI) past(m *meter.Module) bool {
	if _, ok := export(m, a.marker); ok || a.future(m) != 0 {
		return false
	}
	return slices.ContainsFunc(m.Exports, func(e meter.Export) bool { return strings.HasPrefix(e.Name, a.older) })
}

// major returns the version that a module is marked with, 0 if none.
func (a *ABI) major(m *meter.Module) int {
	if _, ok := export(m, a.marker); ok {
		return int(a.version.Major)
	}
	return a.future(m)
}

// future returns the major version of a module's ABI if it is not this host's.
func (a *ABI) future(m *meter.Module) int {
	if _, ok := export(m, a.marker); ok {
		return 0
	}
	for _, e := range m.Exports {
		digits, ok := strings.CutPrefix(e.Name, a.prefix)
		if v, err := strconv.Atoi(digits); ok && err == nil && v > int(a.version.Major) {
			return v
		}
	}
	return 0
}

// Kind returns what a module of the kind makes: environment or component.
func (a *ABI) Kind() string { return a.one }

// modules returns everything that a guest of the kind can import.
func (a *ABI) modules() (list []HostModule) {
	for _, m := range HostModules() {
		if m.Name == a.imports || m.Name == WASI {
			list = append(list, m)
		}
	}
	return list
}
