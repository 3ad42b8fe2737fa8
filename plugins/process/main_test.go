package process

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rlhost/rlhost/hostabi/native"
)

// TestMain makes the test binary a plugin as well: which one, says its first argument.
func TestMain(m *testing.M) {
	if os.Getenv(native.CookieKey) != "" && len(os.Args) > 1 {
		playRole(os.Args[1])
		os.Exit(0)
	}
	code := m.Run()
	if dir, err := envCache(); err == nil {
		_ = os.RemoveAll(dir) // what stays is a folder for temporary files
	}
	os.Exit(code)
}

// self returns a program that is this test binary in a role.
func self(t testing.TB, role ...string) Program {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Program{Name: role[0], Path: path, Args: role, Start: 10 * time.Second}
}

func playRole(role string) {
	switch role {
	case "plain":
		serveRaw(native.Version, answers{})
	case "another-version":
		serveRaw(native.Version+1, answers{})
	case "another-abi":
		serveRaw(native.Version, answers{native.MethodDescribe: native.Description{ABI: "99.0"}})
	case "prints":
		fmt.Println("Loading the native library of something ...")
		serveRaw(native.Version, answers{})
	case "exits":
		fmt.Fprintln(os.Stderr, "libcuda.so.1: cannot open shared object file")
		os.Exit(3)
	case "hangs":
		sleepForEver()
	case "listens-elsewhere":
		l, _ := net.Listen("tcp", "127.0.0.1:0")
		fmt.Printf("1|%d|tcp|%s|grpc|\n", native.Version, l.Addr())
		sleepForEver()
	case "no-answer":
		serveRaw(native.Version, answers{native.MethodDescribe: func() any { select {} }})
	case "nonsense":
		serveRaw(native.Version, answers{native.MethodDescribe: json.RawMessage(`"nonsense"`)})
	case "refuses":
		serveRaw(native.Version, answers{native.MethodDescribe: status.Error(codes.FailedPrecondition, "no license")})
	case "environment":
		serveRaw(native.Version, answers{native.MethodDescribe: native.Description{ABI: native.ABI, SDK: strings.Join(os.Environ(), "\n")}})
	case "talks":
		go talk()
		serveRaw(native.Version, answers{})
	case "floods":
		serveRaw(native.Version, answers{native.MethodDescribe: flood})
	case "leaves-a-child", "leaves-a-session", "leaves-a-stranger":
		child := exec.Command("sleep", "1000")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: role != "leaves-a-child"}
		if role == "leaves-a-stranger" { // nothing in its environment tells where it comes from
			child.Env = []string{}
		}
		if err := child.Start(); err != nil {
			panic(err)
		}
		serveRaw(native.Version, answers{native.MethodDescribe: native.Description{ABI: native.ABI, SDK: fmt.Sprint(child.Process.Pid)}})
	case "probe":
		serveProbe()
	case "files":
		serveRaw(native.Version, answers{native.MethodDescribe: native.Description{ABI: native.ABI, SDK: openFiles()}})
	default:
		playOther(role)
	}
}

// talk prints to both of the streams that the process began with.
func talk() {
	out := os.NewFile(1, "stdout")
	err := os.NewFile(2, "stderr")
	for os.Getenv("PLUGIN_UNIX_SOCKET_DIR") != "" {
		files, _ := filepath.Glob(os.Getenv("PLUGIN_UNIX_SOCKET_DIR") + "/*")
		if len(files) > 0 {
			break
		}
	}
	time.Sleep(100 * time.Millisecond) // behind the handshake
	fmt.Fprintln(out, "a library says hello")
	fmt.Fprintln(err, `{"@level":"warn","@message":"low on memory","@module":"x","free":12}`)
	fmt.Fprintln(err, "plain words")
	fmt.Fprintln(err, strings.Repeat("long", 10000))
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
	return native.Description{ABI: native.ABI, SDK: "raw", Kinds: []native.Kind{{Name: "thing"}}}
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

// answers is what a raw plugin answers to calls by method: a document, an error, or a function that returns one.
type answers map[string]any

// serveRaw is a plugin without any SDK.
func serveRaw(version int, a answers) {
	if a[native.MethodDescribe] == nil {
		a[native.MethodDescribe] = native.Description{ABI: native.ABI, SDK: "raw", Kinds: []native.Kind{{Name: "thing"}}}
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion: uint(version), MagicCookieKey: native.CookieKey, MagicCookieValue: native.CookieValue,
		},
		Plugins:    plugin.PluginSet{native.PluginName: rawPlugin{answers: a}},
		GRPCServer: plugin.DefaultGRPCServer,
	})
}

type rawPlugin struct {
	plugin.NetRPCUnsupportedPlugin
	answers answers
}

func (rawPlugin) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

func (p rawPlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	desc := &grpc.ServiceDesc{ServiceName: native.Service, HandlerType: (*any)(nil)}
	for _, method := range []string{
		native.MethodDescribe, native.MethodConfigure, native.MethodStart, native.MethodSnapshot,
		native.MethodRestore, native.MethodPause, native.MethodResume, native.MethodWaiting, native.MethodStop,
	} {
		desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: method, Handler: p.handler(method)})
	}
	s.RegisterService(desc, struct{}{})
	return nil
}

type handler = func(srv any, ctx context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error)

func (p rawPlugin) handler(method string) handler {
	return func(_ any, _ context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		request := new(wrapperspb.BytesValue)
		if err := dec(request); err != nil {
			return nil, err
		}
		answer := p.answers[method]
		switch fn := answer.(type) {
		case func() any:
			answer = fn()
		case func([]byte) any:
			answer = fn(request.Value)
		}
		if err, ok := answer.(error); ok {
			return nil, err
		}
		if answer == nil {
			answer = native.Empty{}
		}
		doc, err := json.Marshal(answer)
		if err != nil {
			return nil, err
		}
		return wrapperspb.Bytes(doc), nil
	}
}

// sleepForEver blocks without being found out: where nothing else can happen, select {} ends the process.
func sleepForEver() {
	for {
		time.Sleep(time.Hour)
	}
}
