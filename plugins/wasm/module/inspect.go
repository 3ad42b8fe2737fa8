package module

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/linear"
	"github.com/rlhost/rlhost/plugins/wasm/internal/meter"
	"github.com/rlhost/rlhost/plugins/wasm/internal/words"
)

// Report describes a module, read without running it.
type Report struct {
	Path   string `json:"path"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
	ABI    int    `json:"abi"` // major version of the ABI of its kind, 0 if it has no marker
	// MemoryMin is the module's initial memory, MemoryMax its declared limit, 0 if none; in bytes.
	MemoryMin uint64   `json:"memory_min"`
	MemoryMax uint64   `json:"memory_max"`
	Kind      string   `json:"kind"` // environment or component, whose ABI that is
	Language  Language `json:"language,omitempty"`
	Features  []string `json:"features"` // extensions of WebAssembly 1.0 that its code uses
	Exports   []Symbol `json:"exports"`
	Imports   []Symbol `json:"imports"`
	Grants    []string `json:"grants"` // capabilities that it needs
	// MoreExports and MoreImports count the symbols beyond maxSymbols, which are not listed.
	MoreExports int `json:"more_exports,omitempty"`
	MoreImports int `json:"more_imports,omitempty"`
	// Snapshots is empty if its state can be saved and forked, else it says why not.
	Snapshots string `json:"no_snapshots_because,omitempty"`
	// Warnings says what does not keep it from being loaded.
	Warnings []Finding `json:"warnings,omitempty"`
	// Findings says what keeps it from being loaded; it is empty for a module that Load would take, as far as one can
	// know without running it.
	Findings []Finding `json:"findings"`
}

// codeOutside is the code of a warning; rlhost explain has its page.
const codeOutside = "W126"

// maxSymbols bounds the list of exports and the list of imports.
const maxSymbols = 200

// Symbol is an import or an export.
type Symbol struct {
	Name  string `json:"name"`
	Type  string `json:"type"`            // signature of a function, or memory, table, global
	Grant string `json:"grant,omitempty"` // capability that an import needs
	ABI   bool   `json:"abi"`             // the ABI of its kind or the host knows the name
}

// Finding is a reason why a module cannot be loaded.
type Finding struct {
	Code   string `json:"code"`
	Reason string `json:"reason"`
	Help   string `json:"help"`
}

// Inspect reads a module and describes it. It runs and compiles nothing. The error is a *table.Error: the file does
// not exist or is no module.
func Inspect(path string) (*Report, error) {
	file, fail := readFile(path, DefaultMaxFileBytes)
	if fail != nil {
		return nil, fail
	}
	m, fail := decode(path, file)
	if fail != nil {
		return nil, fail
	}
	sum := sha256.Sum256(file)
	a := abiOf(m)
	r := &Report{Path: path, Bytes: len(file), SHA256: hex.EncodeToString(sum[:]), Kind: a.one, Language: languageOf(file), ABI: a.major(m),
		Features: []string{}, Grants: []string{}, Findings: []Finding{}}
	if len(m.Memories) > 0 {
		r.MemoryMin = uint64(m.Memories[0].Min) * linear.WasmPage
		r.MemoryMax = uint64(m.Memories[0].Max) * linear.WasmPage
	}
	r.symbols(m, a)
	found := check(path, m, a.grants, a)
	if metered, err := m.Rewrite(); err != nil {
		found = append(found, moduleError(path, file, err))
	} else {
		r.Features, r.Snapshots = metered.Features, metered.State
		if metered.Outside != "" {
			r.Warnings = append(r.Warnings, Finding{codeOutside, "has " + metered.Outside + ": it is left out, where the specification has the module fail",
				"make the table as large, or leave the segment out"})
		}
	}
	for _, e := range found {
		r.Findings = append(r.Findings, Finding{e.Code, e.Reason, e.Help})
	}
	return r, nil
}

func (r *Report) symbols(m *meter.Module, a *ABI) {
	listed := func(n int) int { return min(n, maxSymbols) }
	r.MoreExports, r.MoreImports = len(m.Exports)-listed(len(m.Exports)), len(m.Imports)-listed(len(m.Imports))
	for _, e := range m.Exports[:listed(len(m.Exports))] {
		s := Symbol{Name: e.Name, Type: kindName(e.Kind), ABI: a.isExport(e.Name) || e.Name == hostabi.ExportMemory}
		if t, ok := m.Signature(e.Index); ok && e.Kind == meter.KindFunction {
			s.Type = signature(t.Params, t.Results)
		}
		r.Exports = append(r.Exports, s)
	}
	for _, i := range m.Imports[:listed(len(m.Imports))] {
		s := Symbol{Name: i.Module + "." + i.Name, Type: kindName(i.Kind)}
		if i.Kind == meter.KindFunction {
			t := m.Types[i.Type]
			s.Type = signature(t.Params, t.Results)
			f, ok := a.find(i.Module, i.Name)
			s.ABI = ok
			if i.Module != hostabi.ImportOptional {
				s.Grant = f.Grant
			}
		}
		if s.Grant != "" && !slices.Contains(r.Grants, s.Grant) {
			r.Grants = append(r.Grants, s.Grant)
		}
		r.Imports = append(r.Imports, s)
	}
	slices.Sort(r.Grants)
}

func kindName(kind byte) string {
	names := [...]string{"function", "table", "memory", "global", "tag"}
	return names[min(int(kind), len(names)-1)]
}

// String writes the report for people, several lines.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, sha256 %s\n", r.Path, words.Bytes(uint64(r.Bytes)), r.SHA256)
	abi := "no environment ABI"
	if r.ABI > 0 {
		abi = fmt.Sprintf("%s ABI %d", r.Kind, r.ABI)
	}
	if r.Language != "" {
		abi += ", in " + string(r.Language)
	}
	memory := "no memory"
	if r.MemoryMin > 0 || r.MemoryMax > 0 {
		memory = "memory from " + words.Bytes(r.MemoryMin)
	}
	if r.MemoryMax > 0 {
		memory += " to " + words.Bytes(r.MemoryMax)
	}
	fmt.Fprintf(&b, "  %s; %s; uses %s\n", abi, memory, listOr(r.Features, "WebAssembly 1.0 alone"))
	fmt.Fprintf(&b, "  grants needed: %s\n", listOr(r.Grants, "none"))
	if r.Snapshots != "" {
		fmt.Fprintf(&b, "  cannot be saved or forked: %s\n", r.Snapshots)
	}
	writeSymbols(&b, "exports", r.Exports, r.MoreExports)
	writeSymbols(&b, "imports", r.Imports, r.MoreImports)
	for _, f := range append(slices.Clone(r.Warnings), r.Findings...) {
		fmt.Fprintf(&b, "  %s: %s; %s\n", f.Code, f.Reason, f.Help)
	}
	if len(r.Findings) == 0 {
		b.WriteString("  nothing speaks against loading it\n")
	}
	return b.String()
}

func listOr(list []string, none string) string {
	if len(list) == 0 {
		return none
	}
	return strings.Join(list, ", ")
}

func writeSymbols(b *strings.Builder, title string, symbols []Symbol, more int) {
	if len(symbols) == 0 {
		fmt.Fprintf(b, "  %s: none\n", title)
		return
	}
	fmt.Fprintf(b, "  %s:\n", title)
	for _, s := range symbols {
		note := ""
		if s.Grant != "" {
			note = "  needs " + s.Grant
		}
		if !s.ABI {
			note += "  unknown to the host"
		}
		sep := ""
		if !strings.HasPrefix(s.Type, "(") {
			sep = " "
		}
		fmt.Fprintf(b, "    %s%s%s%s\n", symbolName(s.Name), sep, s.Type, note)
	}
	if more > 0 {
		fmt.Fprintf(b, "    and %d more\n", more)
	}
}
