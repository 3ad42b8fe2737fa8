package module

import (
	"slices"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/meter"
)

// optional finds the functions that a module imports optionally: in the metered module they are the host's where they are granted, else
// functions that do nothing. A function that returns a status, or that the ABI does not have, is named Absent, any other one Silent.
func (a *ABI) optional(m *meter.Module, grants []string) {
	for k := range m.Imports {
		i := &m.Imports[k]
		if i.Module != hostabi.ImportOptional || i.Kind != meter.KindFunction {
			continue
		}
		f, ok := a.find(i.Module, i.Name)
		t := m.Types[i.Type]
		switch {
		case ok && (f.Grant == "" || slices.Contains(grants, f.Grant)):
			i.To = [2]string{a.imports, i.Name}
		case i.Name == hostabi.ImportLogEnabled:
			i.To = [2]string{stubs(t), Silent}
		default:
			i.To = [2]string{stubs(t), Absent}
		}
	}
}

// Names of the functions of a module that StubTypes knows: what stands for a function that a guest may do without. Absent returns
// StatusUnsupported where its first result is an i32, Silent 0.
const (
	Absent = "absent"
	Silent = "silent"
)

// stubs is the name of the host's module with the functions of a type that stand for absent ones.
func stubs(t meter.FuncType) string {
	return hostabi.ImportOptional + ":" + string(t.Params) + ":" + string(t.Results)
}

// StubTypes returns the types of parameters and results of the functions of a host module that stands for absent functions; ok is false
// for any other module.
func StubTypes(name string) (params, results []byte, ok bool) {
	rest, ok := cut(name, hostabi.ImportOptional+":")
	if !ok {
		return nil, nil, false
	}
	at := slices.Index(rest, ':')
	if at < 0 {
		return nil, nil, false
	}
	return rest[:at], rest[at+1:], true
}

func cut(name, prefix string) ([]byte, bool) {
	if len(name) < len(prefix) || name[:len(prefix)] != prefix {
		return nil, false
	}
	return []byte(name[len(prefix):]), true
}

// maxStubParams bounds the parameters, and the results, of a function that is imported optionally and does not exist.
const maxStubParams = 16

// stubbed reports whether a function of that type can be stood for: it has numbers alone.
func stubbed(t meter.FuncType) bool {
	numbers := func(types []byte) bool {
		return len(types) <= maxStubParams && !slices.ContainsFunc(types, func(t byte) bool { return t < 0x7c || t > 0x7f })
	}
	return numbers(t.Params) && numbers(t.Results)
}
