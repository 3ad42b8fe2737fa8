package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/control"
)

func mustNote(t *testing.T, r *Run, c Change) {
	t.Helper()
	if err := r.Note(c); err != nil {
		t.Fatal(err)
	}
}

func mustChanges(t *testing.T, r *Run) []Change {
	t.Helper()
	list, err := r.Changes()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestChangesComeBackAsTheyWereNoted(t *testing.T) {
	r := create(t)
	if list := mustChanges(t, r); len(list) != 0 {
		t.Errorf("a run that was never changed has %v", list)
	}
	want := Change{
		Step: StepCommitted, Number: 3, What: "swap", Component: "rollout", Old: &Version{"a.wasm", "41c2"}, New: &Version{"b.wasm", "9be0"},
		Before: "x", After: "y", Back: []string{`env.a.use="a.wasm"`}, EnvStep: 12288, PolicyVersion: 6, At: "episode",
		UID: 1000, Command: []string{"rlhost", "swap", "rollout", "b\n.wasm"}, Outcome: &control.SwapReply{Outcome: control.Committed, Envs: 64},
	}
	before := time.Now().Add(-time.Second)
	mustNote(t, r, want)
	mustNote(t, r, Change{Step: StepSettled, Number: 3})
	list := mustChanges(t, r)
	if len(list) != 2 || list[1].Step != StepSettled {
		t.Fatalf("got %+v, want both in order", list)
	}
	got := list[0]
	if got.Time.Before(before) {
		t.Errorf("noted at %v", got.Time)
	}
	if *got.Old != *want.Old || *got.New != *want.New {
		t.Errorf("from %v to %v, want from %v to %v", got.Old, got.New, want.Old, want.New)
	}
	got.Time, got.Old, got.New = time.Time{}, want.Old, want.New
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestATornLineIsIgnoredAndCutOff(t *testing.T) {
	r := create(t)
	mustNote(t, r, Change{Step: StepBegin, Number: 1})
	path := filepath.Join(r.Dir, changesFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 1; cut < len(whole); cut += 7 {
		if err := os.WriteFile(path, append(bytes.Clone(whole), whole[:cut]...), 0o644); err != nil {
			t.Fatal(err)
		}
		if list := mustChanges(t, r); len(list) != 1 {
			t.Errorf("torn after %d bytes: %d lines, want 1", cut, len(list))
		}
		mustNote(t, r, Change{Step: StepCommitted, Number: 1})
		if list := mustChanges(t, r); len(list) != 2 || list[1].Step != StepCommitted {
			t.Errorf("a line after one torn after %d bytes: %+v", cut, list)
		}
	}
	if err := os.WriteFile(path, append([]byte("no JSON\n"), whole...), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Changes(); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a line that is no JSON: %v", err)
	}
}

func TestALineThatCannotBeWrittenLeavesNoTrace(t *testing.T) {
	r := create(t)
	mustNote(t, r, Change{Step: StepBegin, Number: 1})
	for _, step := range []string{"open", "write", "flush"} {
		r.disk.fail = func(at, path string) error {
			if at == step {
				return syscall.ENOSPC
			}
			return nil
		}
		if err := r.Note(Change{Step: StepCommitted, Number: 1}); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free some space") {
			t.Errorf("full disk at %s: %v", step, err)
		}
		r.disk.fail = nil
		if list := mustChanges(t, r); len(list) != 1 {
			t.Errorf("full disk at %s left %d lines, want 1", step, len(list))
		}
	}
	reader, err := Open("", r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Note(Change{}); !errors.Is(err, errReadOnly) {
		t.Errorf("Note without the lock: %v", err)
	}
}

// swapForEver makes a swap's changes in a run's folder, over and over, and says so before and after each.
func swapForEver(args []string) error {
	r, err := Open("", args[0])
	if err != nil {
		return err
	}
	if err := r.Lock(); err != nil {
		return err
	}
	for n := uint64(1); ; n++ {
		source := filepath.Join(args[0], "source")
		if err := os.WriteFile(source, fmt.Appendf(nil, "module %d", n%7), 0o644); err != nil {
			return err
		}
		m, err := r.Store(source)
		if err != nil {
			return err
		}
		if err := r.Note(Change{Step: StepBegin, Number: n, After: m.Hash}); err != nil {
			return err
		}
		if err := r.WritePipeline([]byte(m.Hash)); err != nil {
			return err
		}
		if err := r.Note(Change{Step: StepCommitted, Number: n, After: m.Hash}); err != nil {
			return err
		}
		fmt.Println("saved", n)
	}
}

// A host that is killed at any moment of a swap leaves a pipeline that names a module which is whole, and the last
// lines say which of the two it is.
func TestKilledSwapLeavesExactlyOneOfTheTwo(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	r := create(t)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for range 15 {
		killRole(t, "swap", r.Dir, 0, random)
		reader, err := Open("", r.Dir)
		if err != nil {
			t.Fatal(err)
		}
		list := mustChanges(t, reader)
		var before, after string
		for _, c := range list {
			if c.Step == StepBegin {
				before, after = after, c.After
			}
		}
		text, err := reader.Pipeline()
		if err != nil {
			t.Fatal(err)
		}
		if got := string(text); got != before && got != after {
			t.Fatalf("pipeline.toml has %s, want %s or %s", got, before, after)
		}
		if _, err := reader.Stored(string(text)); err != nil {
			t.Fatal(err)
		}
		if last := list[len(list)-1]; last.Step == StepCommitted && last.After != string(text) {
			t.Fatalf("the last line says %s, pipeline.toml %s", last.After, text)
		}
		if err := os.Remove(filepath.Join(r.Dir, changesFile)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(r.Dir, PipelineFile), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStoreKeepsOldFilesAndNothingHalf(t *testing.T) {
	r := create(t)
	source := filepath.Join(t.TempDir(), "env.wasm")
	if err := os.WriteFile(source, []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	first, err := r.Store(source)
	if err != nil || !first.New || !filepath.IsAbs(first.Path) || first.Hash != hexHash([]byte("one")) {
		t.Fatalf("Store: %+v, %v", first, err)
	}
	if err := os.WriteFile(source, []byte("two"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Stored(first.Hash); err != nil {
		t.Errorf("after the source has changed: %v", err)
	}
	again, err := r.Store(first.Path)
	if err != nil || again.New || again.Path != first.Path {
		t.Errorf("the same once more: %+v, %v", again, err)
	}
	for k := 0; ; k++ {
		n, reached := 0, false
		r.disk.fail = func(string, string) error {
			if n++; n <= k {
				return nil
			}
			reached = true
			return syscall.ENOSPC
		}
		m, err := r.Store(source)
		r.disk.fail = nil
		if !reached {
			if err != nil {
				t.Errorf("Store without a failure: %v", err)
			}
			if err := r.Unstore(m); err != nil {
				t.Error(err)
			}
			break
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("step %d failed, Store says %v", k, err)
		}
	}
	if _, err := r.Store(filepath.Join(r.Dir, "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(first.Path, []byte("onf"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Stored(first.Hash); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a stored module that was changed: %v", err)
	}
	if back, err := r.Store(source); err != nil || back.Hash == first.Hash {
		t.Errorf("%+v, %v", back, err)
	}
}

func TestLogIsBoundedAndReadInOrder(t *testing.T) {
	r := create(t)
	l, err := r.openLog(1000)
	if err != nil {
		t.Fatal(err)
	}
	follower := l.Follow()
	for i := range 100 {
		fmt.Fprintf(l, "{\"n\":%d,\"text\":\"%s\"}\n", i, strings.Repeat("x", 20))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	followed := 0
	for range follower.Records() {
		followed++
	}
	if followed != 100 || l.Lost() != 0 {
		t.Errorf("%d records followed, %d lost; want 100, 0", followed, l.Lost())
	}
	for _, name := range []string{logFile, oldLogFile} {
		if info, err := os.Stat(filepath.Join(r.Dir, name)); err != nil || info.Size() > 1000 {
			t.Errorf("%s: %v, %v; want 1000 bytes at most", name, info, err)
		}
	}
	var numbers []int
	err = r.ReadLog(func(record []byte) bool {
		var v struct{ N int }
		if err := json.Unmarshal(record, &v); err != nil {
			t.Error(err)
		}
		numbers = append(numbers, v.N)
		return true
	})
	if err != nil || len(numbers) < 20 || numbers[len(numbers)-1] != 99 {
		t.Fatalf("read %v, %v", numbers, err)
	}
	for i, n := range numbers {
		if n != numbers[0]+i {
			t.Errorf("read %v: not in order", numbers)
			break
		}
	}
	fmt.Fprintln(l, "late")
	if l.Lost() != 1 {
		t.Errorf("a record after Close: %d lost, want 1", l.Lost())
	}
}

func TestLogContinuesAfterATornRecordAndWithASlowFollower(t *testing.T) {
	r := create(t)
	if err := os.WriteFile(filepath.Join(r.Dir, logFile), []byte("{\"n\":1}\n{\"n\":"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := r.OpenLog()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	follower := l.Follow()
	for range followerRoom + 7 {
		fmt.Fprintln(l, `{"n":2}`)
	}
	if got := len(follower.Records()); got != followerRoom {
		t.Errorf("%d records wait, want %d", got, followerRoom)
	}
	follower.Close()
	fmt.Fprintln(l, `{"n":3}`)
	records := 0
	err = r.ReadLog(func(record []byte) bool {
		records++
		return json.Valid(record)
	})
	if want := 1 + followerRoom + 7 + 1; err != nil || records != want {
		t.Errorf("%d records, %v; want %d", records, err, want)
	}
}

func TestLiveRunsAreLocked(t *testing.T) {
	dir := t.TempDir()
	ended, err := Create(dir, "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := ended.Close(); err != nil {
		t.Fatal(err)
	}
	held, err := Create(dir, "b")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	live, err := Live(dir)
	if err != nil || len(live) != 1 || live[0].ID() != held.ID() {
		t.Errorf("%v, %v; want %s alone", live, err, held.ID())
	}
	if live, err := Live(filepath.Join(dir, "nothing")); err != nil || len(live) != 0 {
		t.Errorf("no folder: %v, %v", live, err)
	}
}
