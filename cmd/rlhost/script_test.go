package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rlhost/rlhost/core/cluster"
)

var update = flag.Bool("update", false, "write what the scripts compare with anew")

func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){"rlhost": main, gatedProgram: beGated, oracleProgram: beOracle, askerProgram: beAsker, clusterProgram: beCluster, securedProgram: beSecured})
}

// clusterProgram is a cluster of NATS for scripts: it writes its servers as TOML, and runs until it is killed.
const clusterProgram = "nats-cluster"

func beCluster() {
	s, err := cluster.Serve(cluster.ServerOptions{Address: "127.0.0.1:0", Folder: os.Args[1]})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("cluster.servers=[\"nats://%s\"]\n", s.Address())
	select {}
}

// TestScript runs the command lines in testdata/script against the program itself, in a new folder and with a new
// cache. GUESTS is the folder of hostile modules.
func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scripts(t, "testdata/script"))
}

// Command lines of runs over several hosts: make test-hosts.
func TestHosts_Script(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scripts(t, "testdata/hosts"))
}

func scripts(t *testing.T, dir string) testscript.Params {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return testscript.Params{
		Dir: dir,
		Setup: func(e *testscript.Env) error {
			e.Setenv("ROOT", root)
			e.Setenv("GUESTS", filepath.Join(root, "cmd/rlhost/testdata/guests"))
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, ".cache"))
			e.Values[jobsKey{}] = map[string]*background{}
			return nil
		},
		RequireExplicitExec: true,
		Condition:           condition,
		UpdateScripts:       *update,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode":  exitCodeIs,
			"samehash":  sameHash,
			"lastline":  lastLine,
			"smalldisk": smallDisk,
			"start":     startJob,
			"waitfor":   waitFor,
			"signal":    signalJob,
			"ends":      endsWith,
			"asnobody":  asNobody,
			"until":     untilOutput,
			"dawdle":    dawdle,
			"buildc":    buildInScript,
			"fetch":     fetch,
		},
	}
}

// exitCodeIs runs a program and checks its exit code: exitcode 3 rlhost validate bad.toml.
func exitCodeIs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode CODE PROGRAM [ARG...]")
	}
	checkExit(ts, args[1:], args[0], ts.Exec(args[1], args[2:]...))
}

func checkExit(ts *testscript.TestScript, command []string, want string, err error) {
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v: %v", command, err)
	}
	if strconv.Itoa(code) != want {
		ts.Fatalf("%v: exit code %d, want %s", command, code, want)
	}
}

var paramsHash = regexp.MustCompile(`"params_hash":"([0-9a-f]{64})"`)

// sameHash checks that the end events in several files have one parameter hash.
func sameHash(ts *testscript.TestScript, neg bool, args []string) {
	first := ""
	for _, name := range args {
		found := paramsHash.FindStringSubmatch(ts.ReadFile(name))
		if found == nil {
			ts.Fatalf("%s: no params_hash", name)
		}
		if first == "" {
			first = found[1]
			continue
		}
		if neg != (found[1] != first) {
			ts.Fatalf("%s has params_hash %.12s, %s has %.12s", name, found[1], args[0], first)
		}
	}
}

var finalLine = regexp.MustCompile(`([^\n]*)\n\z`)

// lastLine checks the last line of a file: lastline FILE REGEXP.
func lastLine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lastline FILE REGEXP")
	}
	found := finalLine.FindStringSubmatch(ts.ReadFile(args[0]))
	if found == nil {
		ts.Fatalf("%s has no last line", args[0])
	}
	if !regexp.MustCompile(args[1]).MatchString(found[1]) {
		ts.Fatalf("last line of %s is %q, want %s", args[0], found[1], args[1])
	}
}

// condition knows [mount]: whether this process may mount file systems, and [root]: whether it may become another user.
func condition(name string) (bool, error) {
	if name == "root" {
		return os.Geteuid() == 0, nil
	}
	if name != "mount" {
		return false, fmt.Errorf("unknown condition %q", name)
	}
	dir, err := os.MkdirTemp("", "rlhost-mount-")
	if err != nil {
		return false, err
	}
	defer os.Remove(dir)
	if syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4k") != nil {
		return false, nil
	}
	return true, syscall.Unmount(dir, 0)
}

// smallDisk mounts a file system of that many KiB on a new folder: smalldisk DIR KIB.
func smallDisk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: smalldisk DIR KIB")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+args[1]+"k"))
	ts.Defer(func() { ts.Check(syscall.Unmount(dir, 0)) })
}

// untilOutput runs a program again and again until its output matches: until REGEXP PROGRAM [ARG...].
func untilOutput(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until REGEXP PROGRAM [ARG...]")
	}
	want := regexp.MustCompile(args[0])
	for deadline := time.Now().Add(longestWait); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if ts.Exec(args[1], args[2:]...) == nil && want.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("%v never said %s", args[1:], args[0])
}

// dawdle yields the processor a random number of times, so that the next step comes at any moment: dawdle MOST.
func dawdle(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: dawdle MOST")
	}
	most, err := strconv.Atoi(args[0])
	ts.Check(err)
	n := rand.IntN(most)
	ts.Logf("dawdles %d times", n)
	for range n {
		runtime.Gosched()
	}
}

// asNobody runs a program as a user who owns nothing, and checks its exit code: asnobody CODE PROGRAM [ARG...]. Its
// output is that of exec.
func asNobody(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: asnobody CODE PROGRAM [ARG...]")
	}
	program, err := exec.LookPath(args[1])
	ts.Check(err)
	openTo(ts, program)
	openTo(ts, ts.MkAbs("."))
	command := append([]string{"--reuid=65534", "--regid=65534", "--clear-groups", program}, args[2:]...)
	checkExit(ts, args[1:], args[0], ts.Exec("setpriv", command...))
}

// openTo lets every user open a path below the folder for temporary files.
func openTo(ts *testscript.TestScript, path string) {
	for ; path != os.TempDir() && path != "/" && path != "."; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		ts.Check(err)
		ts.Check(os.Chmod(path, info.Mode().Perm()|0o055))
	}
}

// background is a program in the background. Its output is in NAME.out and NAME.err.
type background struct {
	cmd  *exec.Cmd
	done chan error // gets Wait's error
}

type jobsKey struct{}

func jobNamed(ts *testscript.TestScript, name string) *background {
	j := ts.Value(jobsKey{}).(map[string]*background)[name]
	if j == nil {
		ts.Fatalf("there is no job %s", name)
	}
	return j
}

// startJob starts a program in the background: start NAME PROGRAM [ARG...].
func startJob(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start NAME PROGRAM [ARG...]")
	}
	program, err := exec.LookPath(args[1])
	ts.Check(err)
	j := &background{cmd: exec.Command(program, args[2:]...), done: make(chan error, 1)}
	j.cmd.Dir = ts.MkAbs(".")
	j.cmd.Env = os.Environ()
	for _, key := range []string{"PATH", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"} {
		j.cmd.Env = append(j.cmd.Env, key+"="+ts.Getenv(key))
	}
	out, err := os.Create(ts.MkAbs(args[0] + ".out"))
	ts.Check(err)
	errOut, err := os.Create(ts.MkAbs(args[0] + ".err"))
	ts.Check(err)
	j.cmd.Stdout, j.cmd.Stderr = out, errOut
	if signal.Ignored(syscall.SIGHUP) {
		// Tests may run under nohup. A signal that this process handles is at its default in its children.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	ts.Check(j.cmd.Start())
	go func() {
		err := j.cmd.Wait()
		j.done <- errors.Join(err, out.Close(), errOut.Close())
	}()
	ts.Value(jobsKey{}).(map[string]*background)[args[0]] = j
	ts.Defer(func() { _ = j.cmd.Process.Kill() })
}

// longestWait is how long a script waits for something that another process does; it is no measure of speed.
const longestWait = time.Minute

// waitFor waits until a file matches: waitfor FILE REGEXP.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitfor FILE REGEXP")
	}
	want := regexp.MustCompile(args[1])
	var last []byte
	for deadline := time.Now().Add(longestWait); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		var err error
		if last, err = os.ReadFile(ts.MkAbs(args[0])); err == nil && want.Match(last) {
			return
		}
	}
	ts.Fatalf("%s does not match %s; it has\n%s", args[0], args[1], last)
}

// signalJob sends a signal: signal NAME INT.
func signalJob(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL}
	if neg || len(args) != 2 || signals[args[1]] == 0 {
		ts.Fatalf("usage: signal NAME INT|TERM|HUP|KILL")
	}
	ts.Check(jobNamed(ts, args[0]).cmd.Process.Signal(signals[args[1]]))
}

// endsWith waits for a job and checks its exit code: ends NAME CODE.
func endsWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ends NAME CODE")
	}
	j := jobNamed(ts, args[0])
	select {
	case err := <-j.done:
		ts.Logf("%s.err:\n%s", args[0], ts.ReadFile(args[0]+".err"))
		checkExit(ts, j.cmd.Args, args[1], err)
	case <-time.After(longestWait):
		ts.Fatalf("%s goes on and on", args[0])
	}
}

// fetch asks the server whose address is the first line of a file, checks the status of its answer and writes its body to a file:
// fetch STATUS ADDRESS-FILE PATH BODY-FILE [NAME:VALUE...]. PATH is relative to the address, further words are headers.
func fetch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: fetch STATUS ADDRESS-FILE PATH BODY-FILE [NAME:VALUE...]")
	}
	line, _, _ := strings.Cut(ts.ReadFile(args[1]), "\n")
	base, err := url.Parse(line)
	ts.Check(err)
	at, err := base.Parse(args[2])
	ts.Check(err)
	request, err := http.NewRequest(http.MethodGet, at.String(), nil)
	ts.Check(err)
	for _, header := range args[4:] {
		name, value, _ := strings.Cut(header, ":")
		if request.Header.Set(name, value); name == "Host" {
			request.Host = value
		}
	}
	client := http.Client{Timeout: longestWait}
	answer, err := client.Do(request)
	ts.Check(err)
	body, err := io.ReadAll(answer.Body)
	ts.Check(errors.Join(err, answer.Body.Close(), os.WriteFile(ts.MkAbs(args[3]), body, 0o644)))
	if strconv.Itoa(answer.StatusCode) != args[0] {
		ts.Fatalf("%s: status %d, want %s:\n%s", at, answer.StatusCode, args[0], body)
	}
}
