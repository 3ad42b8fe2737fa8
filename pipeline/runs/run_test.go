package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The test binary acts as another process when this variable names what it should do.
const roleVar = "RLHOST_RUNS_TEST_ROLE"

func TestMain(m *testing.M) {
	roles := map[string]func([]string) error{
		"create": createMany, "save": saveForEver, "limited": saveLimited, "nobody": saveAsNobody,
		"swap": swapForEver,
	}
	if role := roles[os.Getenv(roleVar)]; role != nil {
		if err := role(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child returns a command that runs a role in another process.
func child(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	return cmd
}

// createMany makes five runs and prints their numbers.
func createMany(args []string) error {
	for range 5 {
		r, err := Create(args[0], args[1])
		if err != nil {
			return err
		}
		fmt.Println(r.Info().Number)
		if err := r.Close(); err != nil {
			return err
		}
	}
	return nil
}

func TestRunsAreNumberedFromOne(t *testing.T) {
	dir := t.TempDir()
	for number := 1; number <= 3; number++ {
		r, err := Create(dir, "cartpole")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if want := filepath.Join(dir, "cartpole", fmt.Sprintf("%04d", number)); r.Dir != want || r.Info().Number != number {
			t.Errorf("run %d lies at %s, want %s", r.Info().Number, r.Dir, want)
		}
	}
}

func TestNumberOfRemovedRunIsNotUsedAgain(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		r, err := Create(dir, "a")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(r.Close(), os.RemoveAll(r.Dir)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Create(dir, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := r.Info().Number; got != 3 {
		t.Errorf("third run has number %d, want 3", got)
	}
}

func TestNumberIsAboveFoldersThatCameFromElsewhere(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "0041"), 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := Create(dir, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := r.Info().Number; got != 42 {
		t.Errorf("number %d, want 42", got)
	}
}

func TestProcessesAtOnceGetDifferentNumbers(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	outs := make([][]byte, 3)
	errs := make([]error, len(outs))
	for i := range outs {
		cmd := child(t, "create", dir, "a")
		wg.Go(func() { outs[i], errs[i] = cmd.Output() })
	}
	wg.Wait()
	seen := make(map[string]bool)
	for i, out := range outs {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		for number := range strings.FieldsSeq(string(out)) {
			if seen[number] {
				t.Errorf("number %s was given twice", number)
			}
			seen[number] = true
		}
	}
	if len(seen) != 15 {
		t.Errorf("%d runs were made, want 15", len(seen))
	}
}

func TestNamesThatAreNoFoldersAreRefused(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "../x", "-f", ".hidden", "a b", "latest", "best", "a\x00b", "\xff",
		strings.Repeat("n", 101)} {
		dir := t.TempDir()
		if _, err := Create(dir, name); err == nil {
			t.Errorf("Create(%q) made a run", name)
		}
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			t.Errorf("Create(%q) left %v", name, entries)
		}
	}
	for _, name := range []string{"a", "cartpole-v1.2_x", "7", "Lauf_für_Elise"} {
		if err := CheckName(name); err != nil {
			t.Errorf("CheckName(%q): %v", name, err)
		}
	}
}

func TestRunIsLockedWhileItIsWritten(t *testing.T) {
	r := create(t)
	other, err := Open("", r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	err = other.Lock()
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) ||
		!strings.Contains(err.Error(), "without --resume") {
		t.Errorf("second Lock = %v, want ErrLocked with the process and what to do", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := other.Lock(); err != nil {
		t.Errorf("Lock after Close of the holder: %v", err)
	}
	if err := other.Save(exampleAt(1)); err != nil {
		t.Errorf("Save after Lock: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

func TestLockReadsTheLastHoldersFiles(t *testing.T) {
	r := create(t)
	other, err := Open("", r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Update(func(i *Info) { i.Seed = 7 }), r.Close(), other.Lock()); err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if got := other.Info().Seed; got != 7 {
		t.Errorf("seed %d after Lock, want 7", got)
	}
}

func TestLockRemovesTheLastHoldersUnfinishedFiles(t *testing.T) {
	r := create(t)
	modules := filepath.Join(r.Dir, modulesDir)
	if err := errors.Join(r.Close(), os.Mkdir(modules, 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{r.Dir, modules} {
		if err := os.WriteFile(filepath.Join(dir, tempPrefix+"half"), []byte("half"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Lock(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{r.Dir, modules} {
		if left, err := filepath.Glob(filepath.Join(dir, tempPrefix+"*")); err != nil || len(left) > 0 {
			t.Errorf("%v is left (%v)", left, err)
		}
	}
}

func TestInfoIsReadAsWritten(t *testing.T) {
	r := create(t)
	err := r.Update(func(i *Info) {
		i.Rlhost, i.Seed, i.Mode, i.Kernel = "1.2.3", 1<<63+1, "sync", "avx2"
		i.Plugins = map[string]string{"cartpole.wasm": "00ff"}
		i.Policies = map[string]json.RawMessage{"main": json.RawMessage(`{"net":"mlp"}`)}
		i.Name, i.Number, i.Format = "other", 99, 99 // kept as they are
		i.Resumes = append(i.Resumes, Resume{PolicyVersion: 3, Exact: true})
	})
	if err := errors.Join(err, r.WritePipeline([]byte("rlhost = 1\n")), r.Save(exampleAt(1)), r.End("return")); err != nil {
		t.Fatal(err)
	}
	again, err := Open("", r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	got, want := again.Info(), r.Info()
	if got.ID() != "cartpole/0001" || got.Seed != 1<<63+1 || got.Kernel != "avx2" || got.State != Ended ||
		got.Reason != "return" || got.Ended == nil || !got.Started.Equal(want.Started) || got.Plugins["cartpole.wasm"] != "00ff" ||
		len(got.Resumes) != 1 || got.Host != want.Host || got.Format != Format {
		t.Errorf("read %+v, want %+v", got, want)
	}
	if source, err := again.Pipeline(); err != nil || string(source) != "rlhost = 1\n" {
		t.Errorf("pipeline %q, %v", source, err)
	}
}

func TestUpdateThatFailsChangesNothing(t *testing.T) {
	r := create(t)
	if err := r.Update(func(i *Info) { i.Policies = map[string]json.RawMessage{"x": json.RawMessage("{")} }); err == nil {
		t.Error("Update with half an object in it succeeded")
	}
	if r.Info().Policies != nil {
		t.Errorf("policies %v, want none", r.Info().Policies)
	}
}

// folderOf makes three runs, cartpole/1, cartpole/2 and lander/1, in this order of start.
func folderOf(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	start := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	for i, name := range []string{"cartpole", "cartpole", "lander"} {
		r, err := Create(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(r.Update(func(info *Info) { info.Started = start.Add(time.Duration(i) * time.Second) }), r.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRunsAreFoundByNamePathAndAge(t *testing.T) {
	dir := folderOf(t)
	for which, want := range map[string]string{
		"latest": "lander/0001", "": "lander/0001", "cartpole": "cartpole/0002", "cartpole/1": "cartpole/0001",
		"cartpole/0002": "cartpole/0002", filepath.Join(dir, "cartpole", "0001"): "cartpole/0001",
		filepath.Join(dir, "cartpole"): "cartpole/0002",
	} {
		r, err := Open(dir, which)
		if err != nil {
			t.Errorf("Open(%q): %v", which, err)
			continue
		}
		if r.ID() != want {
			t.Errorf("Open(%q) = %s, want %s", which, r.ID(), want)
		}
	}
}

func TestErrorOfMissingRunListsTheOthers(t *testing.T) {
	dir := folderOf(t)
	for _, which := range []string{"cartpol", "cartpole/9", "cartpole/x", "/no/such/path", "cartpole/0001/run.json"} {
		_, err := Open(dir, which)
		if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "lander/0001, cartpole/0002, cartpole/0001") {
			t.Errorf("Open(%q): %v; want ErrNotFound with the runs there are", which, err)
		}
	}
	for _, empty := range []string{t.TempDir(), filepath.Join(dir, "nowhere")} {
		if _, err := Open(empty, "latest"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "no run in") {
			t.Errorf("Open in an empty folder: %v", err)
		}
	}
}

func TestFolderWithoutDescriptionIsNoRun(t *testing.T) {
	dir := folderOf(t)
	if err := os.Mkdir(filepath.Join(dir, "cartpole", "0003"), 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir, "cartpole")
	if err != nil || r.ID() != "cartpole/0002" {
		t.Errorf("Open(cartpole) = %v, %v; want the newest that was begun, cartpole/0002", r, err)
	}
	infos, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, i := range infos {
		ids = append(ids, i.ID())
	}
	if want := []string{"cartpole/0001", "cartpole/0002", "lander/0001"}; !slices.Equal(ids, want) {
		t.Errorf("List = %v, want %v", ids, want)
	}
}

func TestDamagedDescriptionIsNamed(t *testing.T) {
	dir := folderOf(t)
	path := filepath.Join(dir, "lander", "0001", infoFile)
	for _, text := range []string{"", "{", "[]", `{"format": "one"}`, `{}`} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, "lander/1"); err == nil || !strings.Contains(err.Error(), path+" is damaged") {
			t.Errorf("Open with %q in run.json: %v", text, err)
		}
	}
}

func TestInfoIsReadWhileItIsUpdated(t *testing.T) {
	r := create(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 20 {
			if err := r.Update(func(info *Info) { info.Seed = uint64(i) }); err != nil {
				t.Error(err)
			}
		}
	})
	for range 100 {
		_, _ = r.ID(), r.Info()
	}
	wg.Wait()
}

// A killed process may have left the lock to a process that it was about to start: opening the run waits for that.
func TestLockOutlivesItsHolderForAMoment(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	first := create(t)
	dir := first.Dir
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		r, err := Open("", dir)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, lockFile)
		if err := os.WriteFile(path, []byte(strconv.Itoa(gone.ProcessState.Pid())+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		left, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if taken, err := flock(left, false); err != nil || !taken {
			t.Fatalf("flock: %v, %v", taken, err)
		}
		locked := make(chan error)
		go func() { locked <- r.Lock() }()
		if err := left.Close(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(<-locked, r.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
