package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
)

// learnerMeta is small state, with a number that JSON's own float64 would not keep.
type learnerMeta struct {
	PolicyVersion uint64 `json:"policy_version"`
	Stream        uint64 `json:"stream"`
}

// exampleAt makes a checkpoint whose every part follows from its version, so that a mixture of two is found.
func exampleAt(version uint64) Checkpoint {
	params := make([]float32, 700)
	for i := range params {
		params[i] = float32(version) + float32(i)/1024
	}
	return Checkpoint{
		PolicyVersion: version, EnvSteps: 2048 * version, MeanReturn: float64(version), Exact: true,
		Components: map[string]component.State{
			"learner": {
				Meta: learnerMeta{version, math.MaxUint64 - version},
				Tensors: map[string]component.Tensor{
					"actor.0.weight": {Shape: []int{7, 100}, Data: params},
					"steps":          {Shape: []int{}, Data: []float32{float32(version)}},
				},
			},
			"rollout[0]": {Blobs: map[string][]byte{
				"split0.instance": []byte(strings.Repeat(fmt.Sprint(version, " "), 2000)),
				"split1.instance": {},
			}},
		},
	}
}

// sameStates compares saved with loaded states.
func sameStates(t *testing.T, got, want Checkpoint) {
	t.Helper()
	if got.PolicyVersion != want.PolicyVersion || got.EnvSteps != want.EnvSteps || got.Exact != want.Exact ||
		got.WhyNotExact != want.WhyNotExact || len(got.Components) != len(want.Components) ||
		math.Float64bits(got.MeanReturn) != math.Float64bits(want.MeanReturn) {
		t.Errorf("loaded %+v, want %+v", got, want)
	}
	for name, state := range want.Components {
		loaded := got.Components[name]
		wantMeta, err := encodeMeta(state)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(loaded.RawMeta, wantMeta) || !reflect.DeepEqual(loaded.Tensors, state.Tensors) || !reflect.DeepEqual(loaded.Blobs, state.Blobs) {
			t.Errorf("component %s is %+v, want %+v", name, loaded, state)
		}
	}
}

func create(t *testing.T) *Run {
	t.Helper()
	r, err := Create(t.TempDir(), "cartpole")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func mustSave(t *testing.T, r *Run, c Checkpoint) {
	t.Helper()
	if err := r.Save(c); err != nil {
		t.Fatal(err)
	}
}

// folders returns the names in the run's checkpoint folder.
func folders(t *testing.T, r *Run) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(r.Dir, checkpointsDir))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestCheckpointIsLoadedAsSaved(t *testing.T) {
	r := create(t)
	want := exampleAt(3)
	mustSave(t, r, want)
	for _, which := range []string{"latest", "best", "3", ""} {
		got, err := r.Load(which)
		if err != nil {
			t.Fatalf("Load(%q): %v", which, err)
		}
		sameStates(t, got, want)
	}
	got, _ := r.Load("latest")
	var meta learnerMeta
	if err := json.Unmarshal(got.Components["learner"].RawMeta, &meta); err != nil {
		t.Fatal(err)
	}
	if want := (learnerMeta{3, math.MaxUint64 - 3}); meta != want {
		t.Errorf("meta = %+v, want %+v", meta, want)
	}
	if shape := got.Components["learner"].Tensors["actor.0.weight"].Shape; !slices.Equal(shape, []int{7, 100}) {
		t.Errorf("shape = %v, want [7 100]", shape)
	}
}

func TestLoadedCheckpointIsSavedAgainAsItWas(t *testing.T) {
	r, again := create(t), create(t)
	mustSave(t, r, exampleAt(5))
	loaded, err := r.Load("latest")
	if err != nil {
		t.Fatal(err)
	}
	mustSave(t, again, loaded)
	got, err := again.Load("5")
	if err != nil {
		t.Fatal(err)
	}
	sameStates(t, got, exampleAt(5))
}

func TestNewestAndBestCheckpointsStay(t *testing.T) {
	r := create(t)
	r.Retain(Retention{Newest: 2, Best: true})
	returns := []float64{10, 400, 30, math.NaN(), 50}
	for i, mean := range returns {
		c := exampleAt(uint64(i + 1))
		c.MeanReturn = mean
		mustSave(t, r, c)
	}
	want := []string{"00000002", "00000004", "00000005", "best.json", "latest.json"}
	if got := folders(t, r); !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	for which, version := range map[string]uint64{"best": 2, "latest": 5} {
		if c, err := r.Load(which); err != nil || c.PolicyVersion != version {
			t.Errorf("Load(%q) = version %d, %v; want %d", which, c.PolicyVersion, err, version)
		}
	}
}

func TestBestIsNotKeptUnlessAskedFor(t *testing.T) {
	r := create(t)
	r.Retain(Retention{Newest: 1})
	for version := uint64(1); version <= 3; version++ {
		c := exampleAt(version)
		c.MeanReturn = -float64(version)
		mustSave(t, r, c)
	}
	if got, want := folders(t, r), []string{"00000003", "latest.json"}; !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	if _, err := r.Load("best"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Load(best) = %v, want ErrNotFound", err)
	}
}

func TestSameVersionSavedAgainReplacesTheFirst(t *testing.T) {
	r := create(t)
	mustSave(t, r, exampleAt(6))
	mustSave(t, r, exampleAt(7))
	second := exampleAt(7)
	second.EnvSteps++
	mustSave(t, r, second)
	for _, which := range []string{"7", "latest", "best"} {
		if c, err := r.Load(which); err != nil || c.EnvSteps != second.EnvSteps {
			t.Errorf("Load(%q) has %d env steps, %v; want those of the second save, %d", which, c.EnvSteps, err, second.EnvSteps)
		}
	}
	if got, want := folders(t, r), []string{"00000006", "00000007-2", "best.json", "latest.json"}; !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
}

func TestRunThatWentBackKeepsItsNewCheckpoints(t *testing.T) {
	r := create(t)
	r.Retain(Retention{Newest: 2})
	for _, version := range []uint64{10, 20, 30, 21, 22} {
		mustSave(t, r, exampleAt(version))
	}
	if got, want := folders(t, r), []string{"00000021", "00000022", "latest.json"}; !slices.Equal(got, want) {
		t.Errorf("kept %v, want the two saved last, %v", got, want)
	}
}

func TestMissingCheckpointErrorListsOthers(t *testing.T) {
	r := create(t)
	_, err := r.Load("latest")
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "no other checkpoint") {
		t.Errorf("Load of a run without checkpoints: %v", err)
	}
	c := exampleAt(4)
	c.MeanReturn = 1000
	mustSave(t, r, c)
	mustSave(t, r, exampleAt(9))
	_, err = r.Load("8")
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "there are also 9 (latest), 4 (best)") {
		t.Errorf("Load of a version that was not saved: %v", err)
	}
	if _, err := r.Load("newest"); err == nil || !strings.Contains(err.Error(), "want latest, best or a policy version") {
		t.Errorf("Load(newest): %v", err)
	}
}

func TestEveryDamagedFileIsNamed(t *testing.T) {
	r := create(t)
	mustSave(t, r, exampleAt(1))
	mustSave(t, r, exampleAt(2))
	dir := filepath.Join(r.Dir, checkpointsDir, "00000002")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 4 {
		t.Fatalf("checkpoint has %d files, want manifest, tensors and two blobs", len(entries))
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for what, data := range damages(whole) {
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := r.Load("latest")
			if err == nil || !strings.Contains(err.Error(), e.Name()) ||
				!strings.HasSuffix(err.Error(), "there are also 1") {
				t.Errorf("%s with %s: %v; want an error that names it and the other checkpoint", e.Name(), what, err)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Load("latest"); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), e.Name()) {
			t.Errorf("%s missing: %v; want ErrCorrupt", e.Name(), err)
		}
		if err := os.WriteFile(path, whole, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Load("latest"); err != nil {
		t.Errorf("restored files: %v", err)
	}
}

// damages returns variants of a file that differ from it.
func damages(whole []byte) map[string][]byte {
	d := map[string][]byte{"a byte more": append(slices.Clone(whole), ' ')}
	if len(whole) > 0 {
		d["a byte less"] = whole[:len(whole)-1]
		d["nothing in it"] = nil
	}
	for bit := 0; bit < 8*len(whole); bit += 8*len(whole)/64 + 1 {
		flipped := slices.Clone(whole)
		flipped[bit/8] ^= 1 << (bit % 8)
		d[fmt.Sprintf("bit %d flipped", bit)] = flipped
	}
	return d
}

func TestManifestCannotNameFilesElsewhere(t *testing.T) {
	r := create(t)
	mustSave(t, r, exampleAt(1))
	dir := filepath.Join(r.Dir, checkpointsDir, "00000001")
	m, err := readManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../latest.json", "/etc/passwd", "..", "", "sub/../manifest.json"} {
		m.Files[name] = fileEntry{}
		m.Components["learner"] = componentEntry{Meta: []byte("null"), Blobs: map[string]string{"x": name}}
		b, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, manifestFile), b, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Load("1"); !errors.Is(err, ErrCorrupt) {
			t.Errorf("manifest with the file %q: %v, want ErrCorrupt", name, err)
		}
	}
}

func TestOtherFormatsAreRefused(t *testing.T) {
	r := create(t)
	mustSave(t, r, exampleAt(1))
	for format, want := range map[int]string{
		99: "written by rlhost 9.9 in format 99, this one reads formats up to 1",
		0:  "written by rlhost 9.9 in format 0, this one reads formats from 1 on",
	} {
		manifest := fmt.Sprintf(`{"format": %d, "rlhost": "9.9", "shape": "unknown"}`, format)
		path := filepath.Join(r.Dir, checkpointsDir, "00000001", manifestFile)
		if err := os.WriteFile(path, []byte(manifest), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Load("latest"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Load of format %d: %v; want %q", format, err, want)
		}
		if err := os.WriteFile(filepath.Join(r.Dir, infoFile), []byte(manifest), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open("", r.Dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open of format %d: %v; want %q", format, err, want)
		}
	}
}

func TestStateThatCannotBeWrittenIsRefusedWhole(t *testing.T) {
	r := create(t)
	mustSave(t, r, exampleAt(1))
	before := folders(t, r)
	bad := map[string]component.State{
		"NaN in meta":       {Meta: math.NaN()},
		"shape and data":    {Tensors: map[string]component.Tensor{"x": {Shape: []int{3}, Data: make([]float32, 2)}}},
		"negative shape":    {Tensors: map[string]component.Tensor{"x": {Shape: []int{-1, -2}, Data: make([]float32, 2)}}},
		"shape of overflow": {Tensors: map[string]component.Tensor{"x": {Shape: []int{1 << 62, 4, 0}}}},
		"reserved name":     {Tensors: map[string]component.Tensor{"__metadata__": {Shape: []int{0}}}},
		"blob without name": {Blobs: map[string][]byte{"": {1}}},
	}
	for what, state := range bad {
		c := exampleAt(2)
		c.Components["learner"] = state
		if err := r.Save(c); err == nil || !strings.Contains(err.Error(), "component learner") {
			t.Errorf("Save with %s: %v, want an error that names the component", what, err)
		}
	}
	if got := folders(t, r); !slices.Equal(got, before) {
		t.Errorf("refused saves left %v, want %v", got, before)
	}
	if got := r.failed; got != uint64(len(bad)) {
		t.Errorf("%d failures counted, want %d", got, len(bad))
	}
}

func TestOpenedRunIsNotWritten(t *testing.T) {
	r := create(t)
	reader, err := Open("", r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"Save": reader.Save(exampleAt(1)), "Update": reader.Update(func(*Info) {}), "End": reader.End("x"),
		"WritePipeline": reader.WritePipeline(nil),
	} {
		if !errors.Is(err, errReadOnly) {
			t.Errorf("%s on a run opened for reading = %v, want errReadOnly", what, err)
		}
	}
}

func TestFileNamesOfDifferentStatesDiffer(t *testing.T) {
	seen := make(map[string]string)
	for _, name := range []string{"rollout[0]", "rollout.0", "rollout%2E0", "ROLLOUT", "a/b", "a\\b", "..", "ü"} {
		for _, dots := range []bool{false, true} {
			file, err := fileName(name, dots)
			if err != nil {
				t.Fatal(err)
			}
			if strings.ContainsAny(file, "/\\") || !dots && strings.Contains(file, ".") {
				t.Errorf("fileName(%q) = %q", name, file)
			}
			if other, taken := seen[file]; taken && other != name {
				t.Errorf("%q and %q have the same file %q", name, other, file)
			}
			seen[file] = name
		}
	}
}

// Each policy has its own best checkpoint, which stays; it remains the policy's best when another one leads.
func TestEachPolicyHasItsBest(t *testing.T) {
	r := create(t)
	if err := r.Lead("main"); err != nil {
		t.Fatal(err)
	}
	r.Retain(Retention{Newest: 1, Best: true})
	for i, returns := range [][2]float64{{10, 1}, {40, 7}, {math.NaN(), 9}, {30, math.NaN()}, {5, 8}} {
		c := exampleAt(uint64(i + 1))
		c.MeanReturn, c.MeanReturns = returns[0], map[string]float64{"rival": returns[1]}
		mustSave(t, r, c)
	}
	version := func(which string) uint64 {
		t.Helper()
		c, err := r.Load(which)
		if err != nil {
			t.Fatal(err)
		}
		return c.PolicyVersion
	}
	if got, want := folders(t, r), []string{"00000002", "00000003", "00000005", "best.json", "best.rival.json", "latest.json"}; !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	if a, b, c := version(r.BestOf("")), version(r.BestOf("main")), version(r.BestOf("rival")); a != 2 || b != 2 || c != 3 {
		t.Errorf("the best are %d, %d of main and %d of rival, want 2, 2 and 3", a, b, c)
	}
	if list := r.Checkpoints(); !slices.Equal(list[0].Best, []string{"best"}) || !slices.Equal(list[1].Best, []string{"best of rival"}) || list[2].Best != nil {
		t.Errorf("checkpoints %+v", list)
	}
	if _, err := r.Load("8"); err == nil || !strings.Contains(err.Error(), "5 (latest), 3 (best of rival), 2 (best)") {
		t.Errorf("Load of a version that was not saved: %v", err)
	}
	evaluated := exampleAt(6)
	evaluated.MeanReturn, evaluated.MeanReturns = 39, map[string]float64{"rival": 8.5}
	if err := r.SaveEvaluated(evaluated); err != nil || version("best") != 2 {
		t.Errorf("an evaluation that is nobody's best: %v", err)
	}
	evaluated.MeanReturns["rival"] = 9
	if err := r.SaveEvaluated(evaluated); err != nil || version("best") != 2 || version(r.BestOf("rival")) != 6 || version(Latest) != 5 {
		t.Errorf("an evaluation that is rival's best alone: %v, the best is %d, rival's %d", err, version("best"), version(r.BestOf("rival")))
	}
	if err := r.Lead("rival"); err != nil || version("best") != 6 || version(r.BestOf("main")) != 2 || r.BestOf("rival") != "best" {
		t.Errorf("where rival leads: %v, the best is %d, main's %d", err, version("best"), version(r.BestOf("main")))
	}
	if err := r.Lead("third"); err != nil || version(r.BestOf("rival")) != 6 {
		t.Errorf("where a third leads: %v", err)
	}
	if _, err := r.Load(r.BestOf("")); !errors.Is(err, ErrNotFound) {
		t.Errorf("the third has a best: %v", err)
	}
	for _, which := range []string{"best.", "best./../../run", "best.a.b"} {
		if _, err := r.Load(which); err == nil || errors.Is(err, ErrNotFound) {
			t.Errorf("Load(%q) = %v, want an error of the word", which, err)
		}
	}
}
