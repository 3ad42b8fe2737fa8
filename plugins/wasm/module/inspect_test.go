package module

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/internal/wasmtest"
)

// must ends the test on an error.
func must(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// cartPole is the C guest of the examples.
const cartPole = "../../../examples/plugins/cartpole-c/cartpole.wasm"

// endless is the code of a loop that never ends.
const endless = asm.Loop + asm.Void + "\x0c\x00" + asm.End + asm.Unreachable

func inspectBytes(t *testing.T, module []byte) (*Report, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guest.wasm")
	must(t, os.WriteFile(path, module, 0o600))
	return Inspect(path)
}

func TestInspect_TellsWhatTheExampleIs(t *testing.T) {
	r, err := Inspect(cartPole)
	must(t, err)
	if r.ABI != 1 || len(r.Findings) != 0 || r.Snapshots != "" || !slices.Equal(r.Features, []string{"SIMD", "bulk memory"}) {
		t.Errorf("report is\n%v", r)
	}
	f, _, err := Read(cartPole, nil, env.Source{}, Environments, DefaultMaxFileBytes)
	must(t, err)
	if f.Hash != r.SHA256 {
		t.Errorf("hash %s, that of the module read is %s", r.SHA256, f.Hash)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

// All mistakes are reported at once, and nothing is run.
func TestInspect_FindsWhatKeepsAModuleFromLoading(t *testing.T) {
	r, err := inspectBytes(t, wasmtest.Guest{
		Functions: map[string]asm.Code{hostabi.ExportBind: wasmtest.Absent, hostabi.ExportStep: "\xfe\x03\x00" + asm.Const(0)},
		Before: func(m *asm.Module) {
			m.Import("rl", "log_enabled", asm.I32s(1), asm.I32s(1))
			m.Import("env", "abort", asm.I32s(4), nil)
		},
		After: func(m *asm.Module) { m.Func("_initialize", nil, nil, 0, endless) },
	}.Bytes())
	must(t, err)
	var codes []string
	for _, f := range r.Findings {
		codes = append(codes, f.Code)
	}
	if want := []string{CodeExport, CodeImport, CodeFeature}; !slices.Equal(codes, want) {
		t.Errorf("findings %v, want %v", codes, want)
	}
	if !slices.Equal(r.Grants, []string{GrantLog}) {
		t.Errorf("grants = %v", r.Grants)
	}
	text := r.String()
	for _, want := range []string{"env.abort(i32, i32, i32, i32)  unknown to the host", "rl.log_enabled(i32) -> i32  needs log",
		"E017: needs atomic operations (threads)", "memory from 64 KiB"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

func TestInspect_RefusesWhatIsNoModule(t *testing.T) {
	var load *table.Error
	if _, err := inspectBytes(t, []byte("text")); !errors.As(err, &load) || load.Code != CodeFormat {
		t.Errorf("Inspect of a text file = %v", err)
	}
	if _, err := Inspect(filepath.Join(t.TempDir(), "none.wasm")); !errors.As(err, &load) || load.Code != CodeMissing {
		t.Errorf("Inspect of nothing = %v", err)
	}
}

// Names come from the file: no terminal takes them for its own, and ten thousand of them are not printed.
func TestInspect_BoundsAndQuotesNames(t *testing.T) {
	evil := "\x1b]0;owned\x07\n  nothing speaks against loading it"
	r, err := inspectBytes(t, wasmtest.Guest{
		Before: func(m *asm.Module) {
			m.Import("rl", evil, nil, nil)
			for range 9_000 {
				m.ImportMemory("rl", strings.Repeat("m", 1_000))
			}
		},
		After: func(m *asm.Module) {
			m.Export(evil, 2, 0)
			m.Func("wide", asm.I32s(1_000), nil, 0)
			for k := range 9_000 {
				m.Export(strings.Repeat("e", 1_000)+strconv.Itoa(k), 2, 0)
			}
		},
	}.Bytes())
	must(t, err)
	text := r.String()
	if strings.ContainsAny(text, "\x1b\x07") || strings.Contains(text, "\n  nothing speaks") {
		t.Errorf("names are not quoted:\n%.2000s", text)
	}
	if len(text) > 200<<10 || !strings.Contains(text, "and 8801 more") || !strings.Contains(text, "mmm\"… (1003 bytes)") {
		t.Errorf("%d bytes are printed:\n%.2000s", len(text), text)
	}
	if !strings.Contains(text, "wide(i32, i32") || !strings.Contains(text, "980 more)") {
		t.Errorf("the signature is not cut:\n%.2000s", text)
	}
	if len(r.Findings) != maxFindings {
		t.Errorf("%d findings, want %d", len(r.Findings), maxFindings)
	}
	for _, f := range r.Findings {
		if strings.ContainsAny(f.Reason, "\x1b\n") {
			t.Errorf("finding %q", f.Reason)
		}
	}
}

// A segment of functions that does not fit its table is reported: wazero leaves it out, where another host fails.
func TestInspect_WarnsOfSegmentsOutsideTheirTable(t *testing.T) {
	for entries, outside := range map[uint32]bool{3: false, 2: true, 0: true} {
		r, err := inspectBytes(t, wasmtest.Guest{After: func(m *asm.Module) {
			m.Table(entries)
			m.Elements(0, 0, 0)
		}}.Bytes())
		must(t, err)
		if len(r.Findings) != 0 || outside != (len(r.Warnings) == 1) || outside && r.Warnings[0].Code != "W126" {
			t.Errorf("a table of %d entries: warnings %v, findings %v", entries, r.Warnings, r.Findings)
		}
		if text := r.String(); outside != strings.Contains(text, "W126: has a segment of 3 functions at 0 of table 0, which begins with "+strconv.Itoa(int(entries))+" entries") ||
			!strings.Contains(text, "nothing speaks against loading it") {
			t.Errorf("a table of %d entries: %s", entries, text)
		}
	}
}
