package control

import (
	"bufio"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const nobody = 65534

// another runs this test binary in a role, as another user if asked.
func another(t *testing.T, role, path string, uid uint32) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CONTROL_TEST_ROLE="+role, "CONTROL_TEST_PATH="+path)
	if uid == 0 {
		return cmd
	}
	data, err := os.ReadFile(os.Args[0]) // its folder may be closed to others
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "control")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cmd.Path, cmd.Dir = filepath.Join(dir, "test"), "/"
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(cmd.Path, data, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	return cmd
}

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be somebody else")
	}
}

// expose opens all folders of a test, and the socket, to everyone.
func expose(t *testing.T, path string) {
	t.Helper()
	for name, mode := range map[string]fs.FileMode{path: 0o777, filepath.Dir(path): 0o755,
		filepath.Dir(filepath.Dir(path)): 0o755, filepath.Dir(filepath.Dir(filepath.Dir(path))): 0o755} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnotherUser_IsRefusedByTheFolderTheClientAndTheJob(t *testing.T) {
	needsRoot(t)
	path, log := serve(t, echo())
	if got := output(t, another(t, "dial", path, nobody)); !strings.Contains(got, "permission denied") {
		t.Errorf("through the folder: %s", got)
	}
	expose(t, path)
	if got := output(t, another(t, "dial", path, nobody)); !strings.Contains(got, "the job is another user's: user 65534 is at this end, user 0 at the other") {
		t.Errorf("the client itself: %s", got)
	}
	got := output(t, another(t, "raw", path, nobody))
	if !strings.Contains(got, `"code":"E073"`) || !strings.Contains(got, "user 0 is at this end, user 65534 at the other") {
		t.Errorf("the job: %s", got)
	}
	if !strings.Contains(log.String(), "user 65534") {
		t.Errorf("the log says %s", log)
	}
	answers(t, path)
}

// Root may enter everywhere, but only a job's own user may query it: root's requests would run as another user.
func TestRoot_IsAnotherUserToo(t *testing.T) {
	needsRoot(t)
	dir, err := os.MkdirTemp("", "control")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	begin(t, another(t, "serve", path, nobody))
	if _, err := Dial(t.Context(), path); code(t, err) != CodeForbidden {
		t.Errorf("Dial = %v", err)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var h hello
	var a answer
	read(t, conn, &h)
	read(t, conn, &a)
	if a.Error == nil || a.Error.Code != CodeForbidden {
		t.Errorf("the job answers %+v", a)
	}
}

// begin starts a server in another process and waits until it serves.
func begin(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the test may have
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "serving\n" {
		t.Fatalf("%q, %v", line, err)
	}
}

func TestKilledJob_ItsClientsGetAnError(t *testing.T) {
	path := filepath.Join(folder(t), "job.sock")
	cmd := another(t, "serve", path, 0)
	begin(t, cmd)
	c := dial(t, path)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Do(t.Context(), "echo", "x", nil, nil); code(t, err) != CodeEnded {
		t.Errorf("the client of a killed job got %v", err)
	}
	_ = cmd.Wait() // killed
	if _, err := Dial(t.Context(), path); code(t, err) != CodeNoJob {
		t.Errorf("Dial to a killed job = %v", err)
	}
}

func TestListen_RemovesWhatKilledJobsHaveLeft(t *testing.T) {
	killed, left := SocketPath("killed"), ""
	path := filepath.Join(folder(t), filepath.Base(killed))
	cmd := another(t, "serve", path, 0)
	begin(t, cmd)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	s, err := Listen(filepath.Join(filepath.Dir(path), "job-new.sock"), echo(), ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left += e.Name() + " "
	}
	if left != "job-new.sock job-new.sock.lock " {
		t.Errorf("left: %s", left)
	}
}
