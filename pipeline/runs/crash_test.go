package runs

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// saveForEver saves one checkpoint after the other, from a version on, and says so before and after each.
func saveForEver(args []string) error {
	r, err := Open("", args[0])
	if err != nil {
		return err
	}
	if err := r.Lock(); err != nil {
		return err
	}
	version, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return err
	}
	for ; ; version++ {
		fmt.Println("begin", version)
		if err := r.Save(exampleAt(version)); err != nil {
			return err
		}
		fmt.Println("saved", version)
	}
}

func TestKilledWriterLeavesTheNewestWholeCheckpoint(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	r := create(t)
	mustSave(t, r, exampleAt(1))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	saved := uint64(1)
	for range 25 {
		saved = killWhileSaving(t, r.Dir, saved, random)
		reader, err := Open("", r.Dir)
		if err != nil {
			t.Fatal(err)
		}
		got, err := reader.Load("latest")
		if err != nil {
			t.Fatalf("after a kill behind version %d: %v", saved, err)
		}
		if got.PolicyVersion < saved {
			t.Fatalf("latest is version %d, %d had been saved", got.PolicyVersion, saved)
		}
		sameStates(t, got, exampleAt(got.PolicyVersion))
		best, err := reader.Load("best")
		if err != nil {
			t.Fatalf("best after a kill behind version %d: %v", saved, err)
		}
		sameStates(t, best, exampleAt(best.PolicyVersion))
		saved = got.PolicyVersion
	}
	// The lock died with its holder, and the next save removes the files of the killed ones.
	reader, err := Open("", r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Lock(); err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	mustSave(t, reader, exampleAt(saved+1))
	for _, name := range folders(t, reader) {
		if strings.HasPrefix(name, tempPrefix) {
			t.Errorf("%s was left behind", name)
		}
	}
}

// killWhileSaving lets another process save, kills it at some moment and returns the last version that it said
// was saved.
func killWhileSaving(t *testing.T, dir string, saved uint64, random *rand.Rand) uint64 {
	t.Helper()
	return killRole(t, "save", dir, saved, random)
}

// killRole does that with any role.
func killRole(t *testing.T, role, dir string, saved uint64, random *rand.Rand) uint64 {
	t.Helper()
	cmd := child(t, role, dir, fmt.Sprint(saved+1))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range 1 + random.IntN(6) {
		if !lines.Scan() {
			t.Fatalf("writer ended: %v", cmd.Wait())
		}
		saved = lastSaved(lines.Text(), saved)
	}
	for range random.IntN(20000) {
		runtime.Gosched()
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		saved = lastSaved(lines.Text(), saved)
	}
	_ = cmd.Wait() // killed
	return saved
}

func lastSaved(line string, before uint64) uint64 {
	number, ok := strings.CutPrefix(line, "saved ")
	if !ok {
		return before
	}
	version, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return before // cut off by the kill
	}
	return version
}

// crash is the end of the process at one step.
type crash struct{ step string }

// attempt saves a checkpoint and lets step k of it fail, either with an error or as if the process had ended. It
// reports whether the save got as far as that.
func attempt(r *Run, c Checkpoint, k int, failure error) (reached bool, err error) {
	n := 0
	r.disk.fail = func(step, path string) error {
		if n++; n <= k {
			return nil
		}
		reached = true
		if failure == nil {
			panic(crash{step + " " + path})
		}
		return failure
	}
	defer func() {
		r.disk.fail = nil
		if v := recover(); v != nil {
			if _, ok := v.(crash); !ok {
				panic(v)
			}
			err = errors.New("crashed")
		}
	}()
	return reached, r.Save(c)
}

func TestFailureAtEveryStepKeepsTheCheckpointBefore(t *testing.T) {
	for name, failure := range map[string]error{"full disk": syscall.ENOSPC, "crash": nil} {
		t.Run(name, func(t *testing.T) {
			r := create(t)
			mustSave(t, r, exampleAt(1))
			for k := 0; ; k++ {
				reached, err := attempt(r, exampleAt(2), k, failure)
				if !reached {
					if err != nil {
						t.Errorf("save without a failure: %v", err)
					}
					if k < 20 {
						t.Errorf("a save has %d steps, want at least one per file, flush and rename", k)
					}
					break
				}
				if err == nil {
					t.Fatalf("step %d failed and Save did not", k)
				}
				checkAfterFailure(t, r, k, failure != nil)
			}
			if c, err := r.Load("latest"); err != nil || c.PolicyVersion != 2 {
				t.Errorf("latest is %d, %v; want 2", c.PolicyVersion, err)
			}
		})
	}
}

// checkAfterFailure checks that a whole checkpoint is there, and after an error that nothing unfinished is.
func checkAfterFailure(t *testing.T, r *Run, step int, tidy bool) {
	t.Helper()
	for _, which := range []string{Latest, Best} {
		c, err := r.Load(which)
		if err != nil {
			t.Fatalf("%s after failure at step %d: %v", which, step, err)
		}
		sameStates(t, c, exampleAt(c.PolicyVersion))
	}
	if !tidy {
		return
	}
	for _, name := range folders(t, r) {
		if strings.HasPrefix(name, tempPrefix) {
			t.Errorf("failure at step %d left %s", step, name)
		}
	}
}

func TestFailedSaveHasARemedyAndIsCounted(t *testing.T) {
	r := create(t)
	mustSave(t, r, exampleAt(7))
	for err, want := range map[error]string{
		syscall.ENOSPC: "free some space there, or keep runs on another disk with run.dir (checkpoint 7 is still there)",
		syscall.EDQUOT: "free some space there",
		syscall.EROFS:  "writable, or choose another folder with run.dir",
		syscall.EACCES: "writable, or choose another folder with run.dir",
		syscall.EFBIG:  "ulimit -f",
	} {
		if _, got := attempt(r, exampleAt(8), 2, err); !errors.Is(got, err) || !strings.Contains(got.Error(), want) {
			t.Errorf("Save on %v: %v; want %q in it", err, got, want)
		}
	}
	if err := r.End("return"); err != nil {
		t.Fatal(err)
	}
	if got := r.Info().SaveFailures; got != 5 {
		t.Errorf("run.json counts %d failures, want 5", got)
	}
}

func TestFullDiskKeepsTheCheckpointBefore(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=192k"); err != nil {
		t.Skipf("mounting a small disk: %v; the limit on file sizes stands in for it", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	r, err := Create(dir, "full")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	mustSave(t, r, exampleAt(1))
	// Fill the disk up to less and less room.
	filler := filepath.Join(dir, "filler")
	failed := uint64(0)
	for size := 160 << 10; size >= 64<<10; size -= 4 << 10 {
		if err := os.WriteFile(filler, make([]byte, size), 0o644); err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		if err := r.Save(exampleAt(2)); err != nil {
			failed++
			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free some space") {
				t.Fatalf("Save on a full disk: %v", err)
			}
			checkAfterFailure(t, r, size, true)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
	}
	if failed == 0 || r.failed != failed {
		t.Errorf("%d saves failed, %d counted; want some", failed, r.failed)
	}
	mustSave(t, r, exampleAt(3))
	if c, err := r.Load("latest"); err != nil || c.PolicyVersion != 3 {
		t.Errorf("latest with room again is %d, %v; want 3", c.PolicyVersion, err)
	}
}

// saveLimited saves while files may only have so many bytes.
func saveLimited(args []string) error {
	r, err := Open("", args[0])
	if err != nil {
		return err
	}
	if err := r.Lock(); err != nil {
		return err
	}
	limit, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		return err
	}
	if err := r.Save(exampleAt(2)); !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), "ulimit -f") {
		return fmt.Errorf("save with files of up to %d bytes: %w", limit, err)
	}
	return nil
}

func TestFileCutOffAnywhereKeepsTheCheckpointBefore(t *testing.T) {
	r := create(t)
	mustSave(t, r, exampleAt(1))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []string{"16", "200", "900", "2500"} {
		if out, err := child(t, "limited", r.Dir, limit).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		c, err := r.Load("latest")
		if err != nil {
			t.Fatal(err)
		}
		sameStates(t, c, exampleAt(1))
		if names := folders(t, r); len(names) != 3 {
			t.Errorf("files of up to %s bytes left %v", limit, names)
		}
	}
}

// saveAsNobody tries to write as a user who owns nothing.
func saveAsNobody(args []string) error {
	if os.Getuid() == 0 {
		const nobody = 65534
		if err := syscall.Setgroups(nil); err != nil {
			return err
		}
		if err := errors.Join(syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
			return err
		}
	}
	if _, err := Create(args[0], "x"); !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "run.dir") {
		return fmt.Errorf("create in a folder of somebody else: %w", err)
	}
	return nil
}

func TestUnwritableFolderIsAnErrorWithARemedy(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	for parent := filepath.Dir(dir); os.Getuid() == 0 && parent != os.TempDir() && parent != "/"; parent = filepath.Dir(parent) {
		if err := os.Chmod(parent, 0o755); err != nil { // so that no other user gets there at all
			t.Fatal(err)
		}
	}
	if out, err := child(t, "nobody", dir).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(file, "x"); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("Create below a file: %v, want ENOTDIR", err)
	}
}

func TestCheckpointThatIsRemovedWhileReadIsLookedForAgain(t *testing.T) {
	r := create(t)
	r.Retain(Retention{Newest: 1})
	mustSave(t, r, exampleAt(1))
	reader, err := Open("", r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		for version := uint64(2); ; version++ {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			if err := r.Save(exampleAt(version)); err != nil {
				ended <- err
				return
			}
		}
	}()
	for range 200 {
		c, err := reader.Load("latest")
		if err != nil {
			t.Error(err)
			break
		}
		sameStates(t, c, exampleAt(c.PolicyVersion))
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
