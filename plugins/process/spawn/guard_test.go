package spawn

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
	"golang.org/x/sys/unix"
)

func TestStart_FromAThreadThatEndsDoesNotEndTheProcess(t *testing.T) {
	r, _ := newRuntime(t, Options{})
	started, thread := make(chan *Process), make(chan int, 1)
	var start func()
	start = func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if unix.Gettid() == os.Getpid() {
			go start() // the process's first thread would stay
			return
		}
		thread <- unix.Gettid()
		p, err := r.Start(context.Background(), self(t, "plain"), StartOptions{Log: r.log, Broken: func(error) {}})
		if err != nil {
			t.Error(err)
		}
		started <- p
	}
	go start()
	p := <-started
	defer p.Close()
	task := fmt.Sprintf("/proc/self/task/%d", <-thread)
	testkit.Until(t, "the thread ends", func() bool {
		_, err := os.Stat(task)
		return errors.Is(err, fs.ErrNotExist)
	})
	if err := p.Call(context.Background(), "Describe", struct{}{}, nil); err != nil {
		t.Errorf("the process has ended with the thread: %v", err)
	}
	p.Kill()
	<-p.Died()
}

func TestGuard_NoCoreDumpHoldsSharedMemory(t *testing.T) {
	for _, cores := range []bool{false, true} {
		r, _ := newRuntime(t, Options{Cores: cores})
		p := started(t, r, self(t, "plain"))
		filter, err := os.ReadFile(fmt.Sprintf("/proc/%d/coredump_filter", p.PID()))
		if err != nil || strings.TrimLeft(strings.TrimSpace(string(filter)), "0") != "31" {
			t.Errorf("coredump_filter %q (%v), want 31: no shared memory", filter, err)
		}
		var limit unix.Rlimit
		if err := unix.Prlimit(p.PID(), unix.RLIMIT_CORE, nil, &limit); err != nil {
			t.Fatal(err)
		}
		if !cores && limit.Max != 0 {
			t.Errorf("core dumps of %d bytes", limit.Max)
		}
		p.Kill()
		<-p.Died()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestGuard_AnotherUserCanNeitherConnectNorLook(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	r, _ := newRuntime(t, Options{})
	p := started(t, r, self(t, "plain"))
	defer p.Close()
	defer func() { p.Kill(); <-p.Died() }()
	sockets, err := filepath.Glob(p.sockets + "/*")
	if err != nil || len(sockets) == 0 {
		t.Fatalf("sockets %v (%v)", sockets, err)
	}
	asNobody := func(script string) string {
		cmd := exec.Command("/bin/sh", "-c", script)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if err == nil {
			return "it works: " + string(out)
		}
		return string(out)
	}
	for _, script := range []string{
		"ls " + r.dir, "ls " + filepath.Dir(sockets[0]), "exec 9<>" + sockets[0],
		fmt.Sprintf("cat /proc/%d/maps", p.PID()), fmt.Sprintf("exec 9</proc/%d/fd/4", p.PID()),
	} {
		if got := asNobody(script); !strings.Contains(got, "ermission denied") {
			t.Errorf("%s as another user: %s", script, got)
		}
	}
}
