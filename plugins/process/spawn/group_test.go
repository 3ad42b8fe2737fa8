package spawn

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

func TestGroups_AreFoundWhereverTheyAreMounted(t *testing.T) {
	const hybrid = "30 1 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n41 30 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
	for name, c := range map[string]struct{ mounts, member, want string }{
		"one hierarchy":     {"35 24 0:30 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n", "0::/user.slice/a.scope\n", "/sys/fs/cgroup/user.slice/a.scope"},
		"beside version 1":  {hybrid, "9:name=systemd:/x\n0::/\n", "/sys/fs/cgroup/unified"},
		"part of a tree":    {"35 24 0:30 /machine/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/machine/x/y\n", "/sys/fs/cgroup/y"},
		"another part":      {"35 24 0:30 /machine/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/machine/z\n", ""},
		"version 1 alone":   {"30 1 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", "3:cpu:/x\n", ""},
		"nothing but lines": {"\n\n - cgroup2 \n", "\n0::\n", ""},
	} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, "proc/self"), 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"mountinfo": c.mounts, "cgroup": c.member} {
			if err := os.WriteFile(filepath.Join(root, "proc/self", file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want := c.want
		if want != "" {
			want = filepath.Join(root, want)
		}
		if got := ownGroup(root); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestGroups_OfAKilledHostGoAtTheNextStart(t *testing.T) {
	r, _ := newRuntime(t, Options{})
	if !groupsWork(t, r) {
		t.Skip("the test needs them")
	}
	const longAgo = "1" // this process began later, so the group is another's of the same number
	dir, err := os.MkdirTemp(r.groups.dir, folderPrefix+strconv.Itoa(os.Getpid())+"-"+longAgo+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	group, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	left := exec.Command("sleep", "1000")
	left.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd()), Setsid: true}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	openGroups("/")
	if err := left.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("what the host left ended with: %v", err)
	}
	testkit.Until(t, "the group is removed", func() bool {
		openGroups("/")
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	})
}

// Where no group can be made there is only the mark, so it is tried by itself.
func TestMark_FindsProcessesOutsideTheirSession(t *testing.T) {
	mark := newMark()
	left := exec.Command("sleep", "1000")
	left.Env = []string{markKey + "=" + mark}
	left.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	killMarked(newMark()) // another's
	if !testkit.ProcessRuns(left.Process.Pid) {
		t.Error("a process with another mark was killed")
	}
	killMarked(mark)
	if err := left.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("it ended with: %v", err)
	}
}
