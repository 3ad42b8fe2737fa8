package spawn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/internal/rig"
)

func TestMain(m *testing.M) { rig.Main(m, func(role string, _ []string) { playRole(role) }, func() {}) }

// self returns a program that is this test binary in a role.
func self(t testing.TB, role ...string) Program {
	return Program{Name: role[0], Path: rig.Self(t), Args: role, Start: 10 * time.Second}
}

func playRole(role string) {
	switch role {
	case "plain":
		rig.Serve(native.Version, rig.Answers{})
	case "another-version":
		rig.Serve(native.Version+1, rig.Answers{})
	case "another-abi":
		rig.Serve(native.Version, rig.Answers{native.MethodDescribe: native.Description{ABI: "99.0"}})
	case "later":
		rig.Serve(native.Version, rig.Answers{native.MethodDescribe: json.RawMessage(`{"abi":"` + native.ABI + `","of_a_later_version":{"sdk":1},
			"capabilities":["of_a_later_version"],"kinds":[{"name":"thing","of_a_later_version":[],"slots":[{"name":"in","payload":"x","of_a_later_version":1}]}]}`)})
	case "prints":
		fmt.Println("Loading the native library of something ...")
		rig.Serve(native.Version, rig.Answers{})
	case "exits":
		fmt.Fprintln(os.Stderr, "libcuda.so.1: cannot open shared object file")
		os.Exit(3)
	case "hangs":
		rig.Sleep()
	case "listens-elsewhere":
		l, _ := net.Listen("tcp", "127.0.0.1:0")
		fmt.Printf("1|%d|tcp|%s|grpc|\n", native.Version, l.Addr())
		rig.Sleep()
	case "no-answer":
		rig.Serve(native.Version, rig.Answers{native.MethodDescribe: func() any { select {} }})
	case "nonsense":
		rig.Serve(native.Version, rig.Answers{native.MethodDescribe: json.RawMessage(`"nonsense"`)})
	case "refuses":
		rig.Serve(native.Version, rig.Answers{native.MethodDescribe: status.Error(codes.FailedPrecondition, "no license")})
	case "checks-once", "checks-never":
		dies := role == "checks-never"
		rig.Serve(native.Version, rig.Answers{native.MethodConfigure: func() any {
			if dies {
				_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			}
			dies = true
			return native.Configured{}
		}})
	case "says-late":
		rig.Serve(native.Version, rig.Answers{native.MethodDescribe: status.Error(codes.DeadlineExceeded, "Deadline Exceeded")})
	case "environment":
		rig.Serve(native.Version, rig.Answers{native.MethodDescribe: native.Description{ABI: native.ABI, SDK: strings.Join(os.Environ(), "\n")}})
	case "place":
		rig.Serve(native.Version, rig.Answers{native.MethodDescribe: native.Description{ABI: native.ABI, SDK: placed()}})
	case "talks":
		rig.Serve(native.Version, rig.Answers{native.MethodDescribe: talk})
	case "floods":
		rig.Serve(native.Version, rig.Answers{native.MethodDescribe: flood})
	case "closes":
		rig.Serve(native.Version, rig.Answers{native.MethodDescribe: func() any { time.AfterFunc(100*time.Millisecond, closeAll); return thing() }})
	case "leaves-a-child", "leaves-a-session", "leaves-a-stranger":
		child := exec.Command("sleep", "1000")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: role != "leaves-a-child"}
		if role == "leaves-a-stranger" { // nothing in its environment shows its origin
			child.Env = []string{}
		}
		if err := child.Start(); err != nil {
			panic(err)
		}
		rig.Serve(native.Version, rig.Answers{native.MethodDescribe: native.Description{ABI: native.ABI, SDK: fmt.Sprint(child.Process.Pid)}})
	case "files":
		rig.Serve(native.Version, rig.Answers{native.MethodDescribe: native.Description{ABI: native.ABI, SDK: openFiles()}})
	default:
		panic("no role " + role)
	}
}

// thing is a raw plugin's description of itself.
func thing() native.Description {
	return native.Description{ABI: native.ABI, SDK: "raw", Kinds: []native.Kind{{Name: "thing"}}}
}

// talk prints to both of the streams that the process began with, and describes the plugin.
func talk() any {
	out := os.NewFile(1, "stdout")
	err := os.NewFile(2, "stderr")
	fmt.Fprintln(out, "a library says hello")
	fmt.Fprintln(err, `{"@level":"warn","@message":"low on memory","@module":"x","free":12}`)
	fmt.Fprintln(err, "plain words")
	fmt.Fprintln(err, strings.Repeat("long", 10000))
	return thing()
}

// closeAll closes the process's files from the host, except its output, and prints that without end.
func closeAll() {
	for _, fd := range []int{native.FDWire, native.FDIn, native.FDOut} {
		_ = unix.Close(fd)
	}
	line := []byte("epoll_wait failed: Bad file descriptor\n")
	for {
		_, _ = unix.Write(2, line)
	}
}

// floodLines is how many lines of 1,000 bytes a flood has in each stream.
const floodLines = 20_000

// flood prints more than anybody wants to read, and describes the plugin.
func flood() any {
	line := bytes.Repeat([]byte("x"), 1000)
	line[len(line)-1] = '\n'
	for range floodLines {
		for _, fd := range []int{1, 2} {
			if _, err := unix.Write(fd, line); err != nil {
				panic(err)
			}
		}
	}
	return thing()
}

func openFiles() string {
	entries, _ := os.ReadDir("/proc/self/fd")
	var list []string
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil {
			list = append(list, e.Name()+" "+to)
		}
	}
	return strings.Join(list, "\n")
}
