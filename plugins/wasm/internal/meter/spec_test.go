package meter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// specFile is a file of the core specification's tests, as wast2json writes it.
type specFile struct {
	Commands []specCommand `json:"commands"`
}

// specCommand is a directive.
type specCommand struct {
	Type       string     `json:"type"`
	Line       int        `json:"line"`
	Name       string     `json:"name"`
	Filename   string     `json:"filename"`
	As         string     `json:"as"`
	Action     specAction `json:"action"`
	ModuleType string     `json:"module_type"`
}

type specAction struct {
	Type   string      `json:"type"`
	Module string      `json:"module"`
	Field  string      `json:"field"`
	Args   []specValue `json:"args"`
}

type specValue struct {
	Type string          `json:"type"`
	Lane string          `json:"lane_type"`
	Raw  json.RawMessage `json:"value"`
}

// words returns a value as wazero takes it: an u64, or two of a vector.
func (v *specValue) words() ([]uint64, error) {
	if v.Type != "v128" {
		var text string
		if err := json.Unmarshal(v.Raw, &text); err != nil {
			return nil, err
		}
		if text == "null" {
			return []uint64{0}, nil
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if v.Type == "externref" {
			n++ // 0 is null
		}
		return []uint64{n}, err
	}
	var lanes []string
	if err := json.Unmarshal(v.Raw, &lanes); err != nil {
		return nil, err
	}
	var words [2]uint64
	width := 128 / len(lanes)
	for i, text := range lanes {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return nil, err
		}
		words[i*width/64] |= n << (i * width % 64)
	}
	return words[:], nil
}

// specSide is a world of the tests: of the original modules, or of the rewritten ones.
type specSide struct {
	runtime wazero.Runtime
	rewrite bool
	named   map[string]api.Module
	last    api.Module
}

func newSpecSide(t *testing.T, dir string, rewrite bool) *specSide {
	s := &specSide{runtime: newWazero(t, wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2)), rewrite: rewrite, named: map[string]api.Module{}}
	support, err := os.ReadFile(filepath.Join(dir, "..", "..", "testdata", "spectest.wasm"))
	if err == nil {
		_, err = s.runtime.InstantiateWithConfig(context.Background(), support, wazero.NewModuleConfig().WithName("spectest"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// errUnmetered is wrapped by errors of modules that the rewriter refuses though they are valid.
var errUnmetered = errors.New("the rewriter refuses it")

// load makes an instance and runs its start.
func (s *specSide) load(code []byte, name string) (api.Module, error) {
	ctx, config := context.Background(), wazero.NewModuleConfig().WithName(name)
	if !s.rewrite {
		return s.runtime.InstantiateWithConfig(ctx, code, config)
	}
	m, err := Decode(code)
	var result *Result
	if err == nil {
		result, err = m.Rewrite()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnmetered, err)
	}
	mod, err := s.runtime.InstantiateWithConfig(ctx, result.Code, config)
	for _, call := range []string{DataCall, StartCall} {
		if err == nil && mod.ExportedFunction(call) != nil {
			_, err = mod.ExportedFunction(call).Call(ctx)
		}
	}
	if err != nil && mod != nil {
		_ = mod.Close(ctx) // as wazero does, so that its name is free
		mod = nil
	}
	return mod, err
}

// act does an action and returns its outcome, as text.
func (s *specSide) act(a *specAction) (string, error) {
	m := s.last
	if a.Module != "" {
		m = s.named[a.Module]
	}
	if m == nil {
		return "", errUnmetered
	}
	if a.Type == "get" {
		return fmt.Sprint(m.ExportedGlobal(a.Field).Get()), nil
	}
	var args []uint64
	for i := range a.Args {
		words, err := a.Args[i].words()
		if err != nil {
			return "", err
		}
		args = append(args, words...)
	}
	fn := m.ExportedFunction(a.Field)
	results, err := fn.Call(context.Background(), args...)
	if err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		return "error: " + reason, nil
	}
	for i, kind := range fn.Definition().ResultTypes() {
		if kind == 0x70 && len(results) == len(fn.Definition().ResultTypes()) { // a function is another one in each world
			results[i] = min(results[i], 1)
		}
	}
	return fmt.Sprint(results), nil
}

// specRun counts directives by what became of them.
type specRun struct {
	t                 *testing.T
	dir, file         string
	original, metered *specSide
	counts            map[string]int
	refused           map[string]int
}

// TestRewrite_CoreSpecificationTestsDoTheSame runs the WebAssembly core tests of versions 1 and 2, which wazero's module has, on each
// module, original and rewritten: both do the same.
func TestRewrite_CoreSpecificationTestsDoTheSame(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	root := filepath.Join(strings.TrimSpace(string(out)), "internal", "integration_test", "spectest")
	if err != nil {
		t.Skipf("no module cache: %v", err)
	}
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) {
			dir := filepath.Join(root, version, "testdata")
			files, err := filepath.Glob(filepath.Join(dir, "*.json"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no tests in %s: %v", dir, err)
			}
			all := specRun{counts: map[string]int{}, refused: map[string]int{}}
			for k, file := range files {
				if testing.Short() && k%10 != 0 {
					continue
				}
				run := specRun{t: t, dir: dir, file: filepath.Base(file), counts: all.counts, refused: all.refused,
					original: newSpecSide(t, dir, false), metered: newSpecSide(t, dir, true)}
				run.run(file)
			}
			for _, what := range slices.Sorted(maps.Keys(all.counts)) {
				t.Logf("%6d %s", all.counts[what], what)
			}
			for _, why := range slices.Sorted(maps.Keys(all.refused)) {
				t.Logf("%6d modules refused: %s", all.refused[why], why)
			}
			if !testing.Short() && all.counts["assert_return the same"] < 10_000 {
				t.Errorf("%d results compared", all.counts["assert_return the same"])
			}
		})
	}
}

func (r *specRun) run(file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		r.t.Fatal(err)
	}
	var spec specFile
	if err := json.Unmarshal(text, &spec); err != nil {
		r.t.Fatalf("%s: %v", file, err)
	}
	for i := range spec.Commands {
		c := &spec.Commands[i]
		as := ""
		if i+1 < len(spec.Commands) && spec.Commands[i+1].Type == "register" {
			as = spec.Commands[i+1].As
		}
		r.counts[c.Type+" "+r.command(c, as)]++
	}
}

// command runs a directive on both sides and returns the outcome. as is the name that the next one registers its module under.
func (r *specRun) command(c *specCommand, as string) string {
	switch c.Type {
	case "register":
		return "with its module"
	case "module", "assert_invalid", "assert_malformed", "assert_unlinkable", "assert_uninstantiable":
		return r.module(c, as)
	case "assert_return", "action", "assert_trap", "assert_exhaustion":
		return r.action(c)
	}
	r.t.Errorf("%s:%d: the directive %s is not known", r.file, c.Line, c.Type)
	return "not known"
}

func (r *specRun) module(c *specCommand, as string) string {
	if c.ModuleType == "text" {
		return "of text, which no host reads"
	}
	code, err := os.ReadFile(filepath.Join(r.dir, c.Filename))
	if err != nil {
		r.t.Fatal(err)
	}
	want, wantErr := r.original.load(code, as)
	got, gotErr := r.metered.load(code, as)
	if c.Type == "module" {
		r.original.keep(c.Name, want)
		r.metered.keep(c.Name, got)
	}
	switch {
	case wantErr == nil && errors.Is(gotErr, errUnmetered):
		r.refused[strings.TrimPrefix(gotErr.Error(), errUnmetered.Error()+": ")]++
		return "refused by the rewriter"
	case wantErr != nil && gotErr == nil && r.original.takes(withoutCustom(code)):
		return "of custom sections, which are left out"
	case (wantErr == nil) != (gotErr == nil):
		r.t.Errorf("%s:%d %s: %v, rewritten %v", r.file, c.Line, c.Type, wantErr, gotErr)
		return "DIFFERENT"
	}
	return "the same"
}

// takes reports whether a module can be loaded.
func (s *specSide) takes(code []byte) bool {
	m, err := s.load(code, "")
	if err == nil {
		_ = m.Close(context.Background())
	}
	return err == nil
}

// keep makes a module the newest one.
func (s *specSide) keep(name string, m api.Module) {
	s.last = m
	if name != "" {
		s.named[name] = m
	}
}

func (r *specRun) action(c *specCommand) string {
	want, err := r.original.act(&c.Action)
	if err != nil {
		r.t.Errorf("%s:%d: %v", r.file, c.Line, err)
		return "NOT RUN"
	}
	got, err := r.metered.act(&c.Action)
	switch {
	case errors.Is(err, errUnmetered):
		return "of a module that the rewriter refuses"
	case err != nil || got != want:
		r.t.Errorf("%s:%d %s: %s, rewritten %s, %v", r.file, c.Line, c.Action.Field, want, got, err)
		return "DIFFERENT"
	}
	return "the same"
}
