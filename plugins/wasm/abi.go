package wasm

import (
	"context"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/meter"
)

// abi is what the modules of one kind share with the host.
type abi struct {
	name, one      string // what such modules are of, and one of these
	place          string // what to do with such a module elsewhere
	marker, prefix string // of this version, and of any
	version        hostabi.Version
	exports        []hostabi.Function
	imports        string // module of the host's functions
	offers         func() []hostFunction
	grants         []string
	prepare        func(context.Context, *Module) error // starts a compiled module for the first time
}

// environments and components are the kinds.
var (
	environments = &abi{
		name: "environments", one: "environment", place: `name it as an environment: use = "…" in [env.NAME]`,
		marker: hostabi.ExportABI, prefix: hostabi.ExportABIPrefix, version: hostabi.EnvABI, exports: hostabi.EnvExports(),
		imports: hostabi.ImportModule, offers: rlFunctions, grants: []string{GrantClock, GrantEntropy, GrantLog, GrantMetric},
		prepare: func(ctx context.Context, m *Module) error { return (&Plugin{Module: m}).prepare(ctx) },
	}
	components = &abi{
		name: "components", one: "component", place: `name it as a component: runtime = "wasm" and use = "…" in [component.NAME]`,
		marker: hostabi.ExportComponentABI, prefix: hostabi.ExportComponentPrefix, version: hostabi.ComponentABI,
		exports: hostabi.ComponentExports(), imports: hostabi.ImportComponent, offers: componentFunctions,
		grants:  []string{GrantClock, GrantLog, GrantMetric, GrantStop},
		prepare: prepareComponent,
	}
)

// abiOf returns the kind of a module: that of environments where it has no marker.
func abiOf(m *meter.Module) *abi {
	if components.marked(m) {
		return components
	}
	return environments
}

// marked reports whether a module has the marker of any version.
func (a *abi) marked(m *meter.Module) bool {
	_, ok := export(m, a.marker)
	return ok || a.future(m) != 0
}

// major returns the version that a module is marked with, 0 if none.
func (a *abi) major(m *meter.Module) int {
	if _, ok := export(m, a.marker); ok {
		return int(a.version.Major)
	}
	return a.future(m)
}

// future returns the major version of a module's ABI if it is not this host's.
func (a *abi) future(m *meter.Module) int {
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

// modules returns everything that a guest of the kind can import.
func (a *abi) modules() []hostModule {
	return []hostModule{{a.imports, a.offers()}, {wasiModule, wasiFunctions()}}
}
