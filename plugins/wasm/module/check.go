package module

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/meter"
)

// Codes of the errors of modules that cannot be used. They are stable: rlhost explain tells more about each.
const (
	CodeMissing     = "E012" // no such file, or it cannot be read
	CodeCommand     = "E013" // a command module: something to run once, not to step
	CodeFormat      = "E014" // not a WebAssembly module, or a damaged one
	CodeExport      = "E015" // a required export is missing or has another signature
	CodeImport      = "E016" // an import is not granted or does not exist
	CodeFeature     = "E017" // the module needs something that this runtime does not offer
	CodeDescription = "E018" // the guest's description is not accepted; wraps hostabi.ErrSpec
	CodeStart       = "E019" // the guest failed before its first environment
	CodeData        = "E092" // the folder of data cannot be granted
	CodeFuture      = "E050" // the module speaks another version of the ABI
)

// decode reads the structure of a module.
func decode(path string, file []byte) (*meter.Module, *table.Error) {
	if what, help := notModule(file); what != "" {
		return nil, &table.Error{Code: CodeFormat, Place: path, Reason: what, Help: help}
	}
	m, err := meter.Decode(file)
	if err != nil {
		return nil, moduleError(path, file, err)
	}
	return m, nil
}

// moduleError returns the error for a module that meter refused.
func moduleError(path string, file []byte, err error) *table.Error {
	e := &table.Error{Code: CodeFormat, Place: path, Reason: err.Error(), Help: "build or copy the file again", Err: err}
	var reserved meter.ErrReserved
	if errors.As(err, &reserved) {
		e.Code, e.Help = CodeExport, "give it another name in the guest's source"
	}
	var found *meter.Error
	if !errors.As(err, &found) {
		return e
	}
	e.Reason = fmt.Sprintf("is damaged at offset %#x: %s", found.Offset, found.What)
	switch {
	case errors.Is(found.Kind, meter.ErrBound):
		e.Code = CodeFeature
		e.Reason = fmt.Sprintf("has %d %s, at most %d are accepted (at offset %#x)", found.Number, found.What, found.Bound, found.Offset)
		e.Help = "no compiler writes such a module by itself: make it smaller"
	case errors.Is(found.Kind, meter.ErrFeature):
		e.Code = CodeFeature
		e.Reason = fmt.Sprintf("needs %s (at offset %#x)", found.What, found.Offset)
		e.Help = "build it without" + languageOf(file).without(found.What) + "; WebAssembly 2.0 with SIMD and bulk memory is there"
	}
	return e
}

// notModule says what a file that does not begin like a core module is, and what to do.
func notModule(file []byte) (what, help string) {
	const wasmMagic, core, component = "\x00asm", "\x01\x00\x00\x00", "\x0d\x00\x01\x00"
	build := "give the .wasm file that the compiler wrote"
	switch {
	case bytes.HasPrefix(file, []byte(wasmMagic+core)):
		return "", ""
	case len(file) == 0:
		return "is empty", "build or copy the file again"
	case bytes.HasPrefix(file, []byte(wasmMagic+component)):
		return "is a component (component model), not a core module",
			"build for wasm32-unknown-unknown or wasm32-wasip1, not wasm32-wasip2"
	case bytes.HasPrefix([]byte(wasmMagic+core), file[:min(len(file), 8)]):
		return fmt.Sprintf("is cut off after %d bytes", len(file)), "build or copy the file again"
	case bytes.HasPrefix(file, []byte(wasmMagic)):
		return "has a version of WebAssembly that does not exist yet", build
	case bytes.HasPrefix(file, []byte("\x7fELF")):
		return "is a native program (ELF), not a WebAssembly module",
			"compile it for wasm32, such as with clang --target=wasm32 or GOOS=wasip1"
	case bytes.HasPrefix(bytes.TrimSpace(file), []byte("(module")):
		return "is WebAssembly text, not a binary module", "translate it with wat2wasm"
	case isText(file):
		return "is a text file, not a WebAssembly module", build
	}
	return "is not a WebAssembly module", build
}

func isText(file []byte) bool {
	head := file[:min(len(file), 512)]
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		if r == utf8.RuneError && n == 1 && len(head) >= utf8.UTFMax || r < ' ' && r != '\n' && r != '\r' && r != '\t' {
			return false
		}
		head = head[n:]
	}
	return true
}

// maxFindings bounds the findings reported about one module.
const maxFindings = 100

// check compares a module's exports and imports with an ABI. It returns every finding, the worst first.
func check(path string, m *meter.Module, grants []string, a *ABI) []*table.Error {
	var found []*table.Error
	add := func(code, reason, help string) {
		if len(found) == maxFindings {
			return
		}
		found = append(found, &table.Error{Code: code, Place: path, Reason: reason, Help: help})
	}
	if _, ok := export(m, hostabi.ExportStart); ok {
		add(CodeCommand, "is a command module (it exports _start)", reactorHelp(m))
		return found
	}
	if Environments.marked(m) && Components.marked(m) {
		add(CodeExport, "has the marker of an environment and that of a component", "export one of them: "+hostabi.ExportABI+" or "+hostabi.ExportComponentABI)
		return found
	}
	if version := a.future(m); version != 0 {
		add(CodeFuture, fmt.Sprintf("needs ABI %d, this rlhost speaks %d", version, a.version.Major),
			"update rlhost, or build the guest with an older SDK")
		return found
	}
	if a.past(m) {
		add(CodeFuture, fmt.Sprintf("is built for a candidate of ABI %d of %s, or an older one", a.version.Major, a.name),
			"build it again with the SDK that belongs to this rlhost; without an SDK see "+a.page)
		return found
	}
	if other := abiOf(m); other != a && other.marked(m) {
		add(CodeExport, fmt.Sprintf("is a module of %s, not of %s", other.name, a.name), other.place)
		return found
	}
	a.checkExports(m, add)
	a.checkImports(m, grants, add)
	return found
}

// reactorHelp says how to build a reactor, by whether the module was built for WASI.
func reactorHelp(m *meter.Module) string {
	for _, i := range m.Imports {
		if i.Module == WASI {
			return "build a reactor: clang or zig cc for wasm32-wasi with -mexec-model=reactor, go build -buildmode=c-shared, or Rust crate-type cdylib"
		}
	}
	return "build a reactor: clang --target=wasm32 -Wl,--no-entry without a function _start, or -mexec-model=reactor for wasm32-wasi"
}

func export(m *meter.Module, name string) (meter.Export, bool) {
	i := slices.IndexFunc(m.Exports, func(e meter.Export) bool { return e.Name == name })
	if i < 0 {
		return meter.Export{}, false
	}
	return m.Exports[i], true
}

func (a *ABI) checkExports(m *meter.Module, add func(code, reason, help string)) {
	if e, ok := export(m, hostabi.ExportMemory); !ok || e.Kind != meter.KindMemory {
		add(CodeExport, "does not export its memory as \"memory\"", "let the linker export it (the default of lld, Go and Rust)")
	} else if len(m.Memories) == 0 {
		add(CodeExport, "exports a memory that it imports", "let the guest define its memory: without --import-memory of lld, --importMemory of AssemblyScript")
	}
	for _, f := range a.exports {
		e, ok := export(m, f.Name)
		if !ok {
			if f.Required {
				add(CodeExport, fmt.Sprintf("does not export %s%s", f.Name, signature(valueTypes(f.Params), valueTypes(f.Results))), a.missingHelp(m, f.Name))
			}
			continue
		}
		if e.Kind != meter.KindFunction {
			add(CodeExport, fmt.Sprintf("exports %s, but not as a function", f.Name), "export the function of that name")
			continue
		}
		t, _ := m.Signature(e.Index)
		params, results := valueTypes(f.Params), valueTypes(f.Results)
		if !bytes.Equal(t.Params, params) || !bytes.Equal(t.Results, results) {
			add(CodeExport, fmt.Sprintf("exports %s%s, it must be %s%s", f.Name, signature(t.Params, t.Results),
				f.Name, signature(params, results)), "correct the parameters in the guest's source")
		}
	}
	_, saves := export(m, hostabi.ExportSave)
	_, loads := export(m, hostabi.ExportLoad)
	if one, other := hostabi.ExportSave, hostabi.ExportLoad; saves != loads {
		if loads {
			one, other = other, one
		}
		add(CodeExport, fmt.Sprintf("exports %s without %s", one, other), "export both, or none, from the guest's source")
	}
}

// missingHelp proposes the export that was probably meant.
func (a *ABI) missingHelp(m *meter.Module, name string) string {
	var others []string
	for _, e := range m.Exports {
		if !a.isExport(e.Name) {
			others = append(others, e.Name)
		}
	}
	if best, ok := table.Nearest(name, others); ok {
		return fmt.Sprintf("did you mean it by %s?", symbolName(best))
	}
	return "export it from the guest's source, as the SDKs do"
}

func (a *ABI) isExport(name string) bool {
	return strings.HasPrefix(name, hostabi.ExportSDKPrefix) || slices.ContainsFunc(a.exports, func(f hostabi.Function) bool { return f.Name == name })
}

func (a *ABI) checkImports(m *meter.Module, grants []string, add func(code, reason, help string)) {
	for _, i := range m.Imports {
		full := symbolName(i.Module + "." + i.Name)
		if i.Kind != meter.KindFunction {
			add(CodeImport, fmt.Sprintf("imports %s, which is not a function", full), "let the guest define it itself")
			continue
		}
		if i.Module == meter.YieldModule && i.Name == meter.YieldName {
			add(CodeImport, fmt.Sprintf("imports %s, which is the host's own", full), "leave it out; the host adds it")
			continue
		}
		f, ok := a.find(i.Module, i.Name)
		t, optional := m.Types[i.Type], i.Module == hostabi.ImportOptional
		if !ok {
			switch {
			case !optional:
				add(CodeImport, fmt.Sprintf("imports %s, which this host does not have", full), a.unknownHelp(i))
			case !stubbed(t):
				add(CodeImport, fmt.Sprintf("imports %s%s, and what is optional has at most %d parameters and as many results, all numbers", full,
					signature(t.Params, t.Results), maxStubParams), "correct the declaration in the guest's source")
			}
			continue
		}
		if !bytes.Equal(t.Params, f.Params) || !bytes.Equal(t.Results, f.Results) {
			add(CodeImport, fmt.Sprintf("imports %s%s, it is %s%s", full, signature(t.Params, t.Results),
				full, signature(f.Params, f.Results)), "correct the declaration in the guest's source")
			continue
		}
		if f.Grant != "" && !optional && !slices.Contains(grants, f.Grant) {
			add(CodeImport, fmt.Sprintf("imports %s, which is not granted", full),
				fmt.Sprintf("add %q to the %s's grants, or build the guest without it", f.Grant, a.one))
		}
	}
}

func (a *ABI) unknownHelp(i meter.Import) string {
	if strings.HasPrefix(i.Module, "wasi:") {
		return "it is made for WASI preview 2: build it for wasip1, such as with GOOS=wasip1 or Rust's wasm32-wasip1"
	}
	const undefined = "env" // where linkers and AssemblyScript look for undefined symbols
	if i.Module == undefined {
		switch i.Name {
		case "abort":
			return "with AssemblyScript, compile with --use abort=assembly/index/abort and define that function, or --use abort= for a plain trap"
		case "seed":
			return "with AssemblyScript, take random numbers from the environment's own stream in place of Math.random"
		}
		return fmt.Sprintf("no library that was linked defines %s: define it in the guest, or link what has it", i.Name)
	}
	module := map[string]string{}
	for _, h := range a.modules() {
		for _, f := range h.Functions {
			module[f.Name] = h.Name
		}
	}
	if best, ok := table.Nearest(i.Name, slices.Collect(maps.Keys(module))); ok {
		return fmt.Sprintf("did you mean %s.%s?", module[best], best)
	}
	return "build the guest without it: only " + a.imports + " and " + WASI + " are there"
}

// find returns the host's function of that name.
func (a *ABI) find(module, name string) (HostFunction, bool) {
	if module == hostabi.ImportOptional {
		module = a.imports
	}
	for _, h := range a.modules() {
		if h.Name != module {
			continue
		}
		for _, f := range h.Functions {
			if f.Name == name {
				return f, true
			}
		}
	}
	return HostFunction{}, false
}

// signature writes a signature as (i32, i64) -> i32.
func signature(params, results []byte) string {
	list := func(types []byte) string {
		const most = 20
		var names []string
		for i, t := range types {
			if i == most {
				names = append(names, fmt.Sprintf("%d more", len(types)-most))
				break
			}
			names = append(names, typeName(t))
		}
		return strings.Join(names, ", ")
	}
	s := "(" + list(params) + ")"
	if len(results) > 0 {
		s += " -> " + list(results)
	}
	return s
}

func typeName(t byte) string {
	names := map[byte]string{0x7f: "i32", 0x7e: "i64", 0x7d: "f32", 0x7c: "f64", 0x7b: "v128",
		0x70: "funcref", 0x6f: "externref"}
	if name, ok := names[t]; ok {
		return name
	}
	return fmt.Sprintf("type %#x", t)
}

// symbolName writes the name of an import or export, which comes from the file: quoted and cut short unless it is an
// ordinary name.
func symbolName(name string) string {
	const most = 200
	plain := func(r rune) bool { return r > ' ' && r < 0x7f }
	if len(name) <= most && strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) < 0 {
		return name
	}
	if len(name) > most {
		return fmt.Sprintf("%q… (%d bytes)", name[:most], len(name))
	}
	return fmt.Sprintf("%q", name)
}
