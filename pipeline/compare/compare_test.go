package compare

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/runs"
)

// folder has three ended runs whose returns are 10, 20 and 30, and one without an evaluation; their pipelines differ in epochs.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i := range 4 {
		r, err := runs.Create(dir, "task")
		if err != nil {
			t.Fatal(err)
		}
		score := float64(10 * (i + 1))
		err = r.Update(func(info *runs.Info) {
			info.Seed, info.Env, info.Outcome = uint64(i), fmt.Sprintf("env%d", i/3), &runs.Outcome{EnvSteps: uint64(1000 * i), Return: &score}
			if i == 3 {
				info.Outcome.Return = nil
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("rlhost = 1\n[run]\nseed = %d\n[component.learner]\nepochs = %d\nlist = [1, 2]\n[[wire]]\nsignal = \"a\"\n", i, 1+i/2)
		if err := r.WritePipeline([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := r.End("env_steps"); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestWhere_ComparesNumbersAndTexts(t *testing.T) {
	t.Parallel()
	list, err := List(folder(t))
	if err != nil {
		t.Fatal(err)
	}
	for condition, want := range map[string][]uint64{
		"eval_return>=20": {1, 2}, "eval_return<20": {0}, "eval_return!=20": {0, 2, 3}, "env=env0": {0, 1, 2}, "seed > 1": {2, 3}, "state=ended": {0, 1, 2, 3},
		"component.learner.epochs=2": {2, 3}, "wire[0].signal=a": {0, 1, 2, 3},
	} {
		found, err := Where(list, []string{condition})
		var seeds []uint64
		for _, r := range found {
			seeds = append(seeds, r.Info.Seed)
		}
		if err != nil || !slices.Equal(seeds, want) {
			t.Errorf("%s: seeds %v, want %v (%v)", condition, seeds, want, err)
		}
	}
	if both, err := Where(list, []string{"eval_return>10", "component.learner.epochs=1"}); err != nil || len(both) != 1 {
		t.Errorf("two conditions: %d runs (%v)", len(both), err)
	}
	for _, wrong := range []string{"no.such.key=1", "retrun!=1", "component.learner.epoch=2"} {
		if _, err := Where(list, []string{wrong}); err == nil || !strings.Contains(err.Error(), "no column and no key of a pipeline is named") {
			t.Errorf("condition %q: %v", wrong, err)
		}
	}
	if _, err := By(list, "component.learner.epoch"); err == nil || !strings.Contains(err.Error(), "the closest are component.learner.epochs, ") {
		t.Errorf("groups of no key: %v", err)
	}
	for _, bad := range []string{"return", "=3", ""} {
		if _, err := Where(list, []string{bad}); err == nil || !strings.Contains(err.Error(), "write it as KEY=VALUE") {
			t.Errorf("condition %q: %v", bad, err)
		}
	}
}

func TestBy_GroupsInTheOrderOfValues(t *testing.T) {
	t.Parallel()
	list, err := List(folder(t))
	if err != nil {
		t.Fatal(err)
	}
	groups, err := By(list, "component.learner.epochs")
	if err != nil || len(groups) != 2 || groups[0].Value != "1" || len(groups[1].Runs) != 2 {
		t.Fatalf("%v (%v)", groups, err)
	}
	rows := GroupRows("epochs", groups)
	if want := []string{"1", "2", "0", "15.0", "-48.5 to 78.5"}; !slices.Equal(rows[1][:5], want) {
		t.Errorf("row %v, want %v", rows[1], want)
	}
	if want := []string{"2", "2", "1", "30.0", "30.0 to 30.0"}; !slices.Equal(rows[2][:5], want) {
		t.Errorf("row %v, want %v", rows[2], want)
	}
	differ, err := Differences(list)
	if err != nil || !slices.Equal(differ, []string{"component.learner.epochs"}) {
		t.Errorf("keys that differ: %v (%v)", differ, err)
	}
}

func TestImprovement_SaysWhyReturnsCannotBeCompared(t *testing.T) {
	t.Parallel()
	list, err := List(folder(t))
	if err != nil {
		t.Fatal(err)
	}
	other := *list[3]
	score := 5.0
	other.Info.Outcome = &runs.Outcome{Return: &score}
	a, b := Group{"a", list[:2]}, Group{"b", list[1:3]}
	if lines, err := Improvement(a, b); err != nil || !strings.Contains(lines, "probability that a run of a has the higher return: 0.125 (") {
		t.Errorf("%s (%v)", lines, err)
	}
	if lines, err := Improvement(a, Group{"one", list[:1]}); err != nil || lines != "" {
		t.Errorf("a single run: %q (%v)", lines, err)
	}
	for want, g := range map[string]Group{
		"none: none of its 2 runs has ended with an evaluation":                         {"none", []*Run{list[3], list[3]}},
		"a was trained on [env0] and other on [env1]: their returns cannot be compared": {"other", []*Run{&other, &other}},
	} {
		if _, err := Improvement(a, g); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", g.Value, err, want)
		}
	}
}

func TestFind_RefusesOtherFolders(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	if list, err := Find(dir, "task/2"); err != nil || len(list) != 1 || list[0].Info.Number != 2 {
		t.Errorf("task/2: %v (%v)", list, err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "empty", "0001"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, which := range []string{"empty/1", filepath.Join(dir, "empty", "0001"), "nothing"} {
		if _, err := Find(dir, which); err == nil || !strings.Contains(err.Error(), "not found") {
			t.Errorf("%s: %v", which, err)
		}
	}
	damaged := filepath.Join(dir, "task", "0001", "pipeline.toml")
	if err := os.WriteFile(damaged, []byte("= ="), 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := By(list, "component.learner.epochs"); err == nil || !strings.Contains(err.Error(), damaged) {
		t.Errorf("a damaged pipeline: %v", err)
	}
}

func TestMatrix_HasAsManyRunsOfEachTask(t *testing.T) {
	t.Parallel()
	if m := Matrix([][]float64{{1, 2, 3}, {4, 5}}); len(m) != 2 || !slices.Equal(m[0], []float64{1, 4}) || !slices.Equal(m[1], []float64{2, 5}) {
		t.Errorf("%v", m)
	}
	if m := Matrix(nil); m == nil || len(m) != 0 {
		t.Errorf("of nothing: %v", m)
	}
}

func TestField_NamesTheColumnThatAFormerWordMeans(t *testing.T) {
	for former, now := range map[string]string{"return": "eval_return", "window": "train_return"} {
		if _, err := new(Run).Field(former); err == nil || err.Error() != fmt.Sprintf("runs have no column %q, did you mean %q?", former, now) {
			t.Errorf("%s: %v, want an error that names %s", former, err, now)
		}
	}
}
