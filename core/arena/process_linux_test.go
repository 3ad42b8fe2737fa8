package arena

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// roleEnv makes the test binary another process of a test: it plays the named role on the arena whose files are its
// descriptors 3 and 4. sharedEnv has the arena's description, holderEnv the process's holder number.
const (
	roleEnv   = "ARENA_TEST_ROLE"
	sharedEnv = "ARENA_TEST_SHARED"
	holderEnv = "ARENA_TEST_HOLDER"
)

// roles are the tasks of other processes, until they are killed or have nothing more to do.
var roles = map[string]func(*Arena) error{
	"pass on":  passOn,
	"hoard":    hoard,
	"scribble": scribbleAll,
}

// bareRoles do not attach.
var bareRoles = map[string]func(Shared) error{
	"read":     readWhatCannotBeWritten,
	"stranger": beAStranger,
}

func TestMain(m *testing.M) {
	role := os.Getenv(roleEnv)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
		os.Exit(1)
	}
}

func play(role string) error {
	s := Shared{}
	if err := json.Unmarshal([]byte(os.Getenv(sharedEnv)), &s); err != nil {
		return err
	}
	if bare, ok := bareRoles[role]; ok {
		return bare(s)
	}
	holder := 0
	if _, err := fmt.Sscan(os.Getenv(holderEnv), &holder); err != nil {
		return err
	}
	s.WordsFD, s.DataFD = 3, 4
	a, err := Attach(s, holder)
	if err != nil {
		return err
	}
	return roles[role](a)
}

// process is the host's side of another process.
type process struct {
	t      *testing.T
	holder int
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
}

// start starts a process that plays a role. The caller stays on its thread, because the process is killed when the
// thread that started it ends.
func start(t *testing.T, role string, holder int, s Shared) *process {
	t.Helper()
	p := &process{t: t, holder: holder, cmd: exec.Command(os.Args[0], "-test.run=^$")}
	for _, fd := range []int{s.WordsFD, s.DataFD} {
		file := os.NewFile(uintptr(dup(t, fd)), "arena")
		defer file.Close()
		p.cmd.ExtraFiles = append(p.cmd.ExtraFiles, file)
	}
	s.Schema = nil
	told, err := json.Marshal(s)
	ok(t, err)
	p.cmd.Env = append(os.Environ(), roleEnv+"="+role, sharedEnv+"="+string(told), fmt.Sprintf("%s=%d", holderEnv, holder))
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.in, err = p.cmd.StdinPipe()
	ok(t, err)
	p.out, err = p.cmd.StdoutPipe()
	ok(t, err)
	ok(t, p.cmd.Start())
	return p
}

// line returns the next line that the process says.
func (p *process) line() string {
	p.t.Helper()
	var text string
	if _, err := fmt.Fscanln(p.out, &text); err != nil {
		p.t.Fatalf("the process said %q, then %v", text, err)
	}
	return text
}

// kill ends the process, which must not have ended by itself, and waits until it is dead.
func (p *process) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Errorf("kill: %v", err)
	}
	_, _ = io.Copy(io.Discard, p.out)
	err := p.cmd.Wait()
	if status, is := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !is || status.Signal() != syscall.SIGKILL {
		p.t.Errorf("the process ended by itself: %v", err)
	}
}
