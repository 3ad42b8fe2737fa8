package spawn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/process/internal/rig"
)

// newRuntime returns a runtime that is closed at the end of the test, and its log.
func newRuntime(t testing.TB, o Options) (*Runtime, *testkit.Buffer) {
	t.Helper()
	log := new(testkit.Buffer)
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close the runtime: %v", err)
		}
		if _, err := os.Stat(r.dir); !os.IsNotExist(err) {
			t.Errorf("the folder %s is still there", r.dir)
		}
	})
	return r, log
}

// started starts a program.
func started(t *testing.T, r *Runtime, p Program) *Process {
	t.Helper()
	x, err := r.Start(context.Background(), p, StartOptions{Log: r.log.With("component", p.Name), Broken: func(error) {}})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestDescribe_AsksAndKeepsTheAnswer(t *testing.T) {
	r, _ := newRuntime(t, Options{})
	for range 2 {
		d, err := r.Describe(context.Background(), self(t, "plain"))
		if err != nil {
			t.Fatal(err)
		}
		if d.SDK != "raw" || len(d.Kinds) != 1 || d.Kinds[0].Name != "thing" {
			t.Errorf("description %+v", d)
		}
	}
}

func TestDescribe_FieldsOfALaterVersionAreIgnored(t *testing.T) {
	r, _ := newRuntime(t, Options{})
	d, err := r.Describe(t.Context(), self(t, "later"))
	if err != nil || len(d.Kinds) != 1 || len(d.Kinds[0].Slots) != 1 || d.Kinds[0].Slots[0].Name != "in" {
		t.Errorf("description %+v, %v", d, err)
	}
	f, err := readFrame([]byte(`{"of_a_later_version":1,"fail":{"reason":"full","of_a_later_version":{}}}`))
	if err != nil || f.Fail == nil || f.Fail.Reason != "full" {
		t.Errorf("frame %+v, %v", f, err)
	}
}

// A process that is kept for the next question may be dead by then, and is replaced; one that dies of its first question is told.
func TestCheckConfig_AsksAnotherProcessWhereTheKeptOneIsDead(t *testing.T) {
	r, _ := newRuntime(t, Options{})
	for range 3 {
		if _, err := r.CheckConfig(t.Context(), self(t, "checks-once"), native.Configuration{}); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.CheckConfig(t.Context(), self(t, "checks-never"), native.Configuration{}); !errors.Is(err, ErrDied) {
		t.Errorf("error %v, want %v", err, ErrDied)
	}
}

// A Python without a plugin's packages is named, with the line that installs them and how to name another Python.
func TestStart_NamesTheModuleThatPythonLacks(t *testing.T) {
	python, args := rig.Gymnasium(t)
	p := Program{Name: "gymnasium", Path: python, Args: args}
	inner := filepath.Join(t.TempDir(), "inner.py")
	lines := "import json\ndef f():\n    import no_such_package.part\nf()\n"
	if err := os.WriteFile(inner, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	p.Args = slices.Concat([]string{"-I", "-S"}, p.Args) // without installed packages
	for _, c := range []struct {
		program    Program
		says, help string
	}{
		{p, `has no module "rlhost"`, python + " -m pip install ./sdk/python (in a clone of rlhost), or name a Python that has it: RLHOST_PYTHON="},
		{Program{Name: "x", Path: inner, Interpreter: []string{python}}, `has no module "no_such_package"`,
			python + " -m pip install no_such_package, or name a Python that has it as `interpreter`"},
	} {
		r, _ := newRuntime(t, Options{})
		_, err := r.Describe(t.Context(), c.program)
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeModule || !strings.Contains(e.Reason, c.says) || !strings.HasPrefix(e.Help, c.help) {
			t.Errorf("error %v, want %s: %s", err, c.says, c.help)
		}
	}
}

func TestStart_SaysWhatIsWrong(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script.sh")
	if err := os.WriteFile(script, []byte("echo hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("\x7fELFnothing"), 0o755); err != nil {
		t.Fatal(err)
	}
	with := func(p Program, change func(*Program)) Program {
		change(&p)
		return p
	}
	cases := []struct {
		name    string
		program Program
		code    string
		says    []string
	}{
		{"no such file", Program{Name: "x", Path: "/no/such/program"}, CodeStart, []string{"/no/such/program", "build it"}},
		{"not executable", Program{Name: "x", Path: script}, CodeStart, []string{"not executable", "interpreter"}},
		{"no program", Program{Name: "x", Path: garbage}, CodeStart, []string{"no program for this machine"}},
		{"no interpreter", Program{Name: "x", Path: script, Interpreter: []string{"no-such-interpreter"}}, CodeStart,
			[]string{"no-such-interpreter"}},
		{"not a plugin", Program{Name: "x", Path: script, Interpreter: []string{"sh"}}, CodeHello,
			[]string{`printed "hello"`, "standard error"}},
		{"prints first", self(t, "prints"), CodeHello, []string{"Loading the native library", "standard error"}},
		{"exits at once", self(t, "exits"), CodeHello, []string{"ended with status 3", "libcuda.so.1"}},
		{"hangs", with(self(t, "hangs"), func(p *Program) { p.Start = 300 * time.Millisecond }), CodeHello,
			[]string{"did not say hello within 300ms", "`start`"}},
		{"does not describe itself", with(self(t, "no-answer"), func(p *Program) { p.Start = time.Second }), CodeHello,
			[]string{"no answer to Describe within 1s"}},
		{"says itself that it is late", with(self(t, "says-late"), func(p *Program) { p.Start = time.Second }), CodeHello,
			[]string{"no answer to Describe within 1s"}},
		{"another version", self(t, "another-version"), CodeVersion, []string{fmt.Sprintf("version %d", native.Version+1), fmt.Sprintf("this host version %d", native.Version), "SDK"}},
		{"another ABI", self(t, "another-abi"), CodeVersion, []string{`ABI "99.0"`, "SDK"}},
		{"listens elsewhere", self(t, "listens-elsewhere"), CodeHello, []string{"tcp", "PLUGIN_UNIX_SOCKET_DIR"}},
		{"talks nonsense", self(t, "nonsense"), CodeProtocol, []string{"Describe"}},
		{"refuses", self(t, "refuses"), CodeProtocol, []string{"no license"}},
		{"wrong sum", with(self(t, "plain"), func(p *Program) { p.SHA256 = strings.Repeat("00", 32) }), CodeChecksum,
			[]string{"not the file that sha256 names"}},
		{"no sum", with(self(t, "plain"), func(p *Program) { p.SHA256 = "abc" }), CodeChecksum, []string{`"abc"`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r, _ := newRuntime(t, Options{})
			_, err := r.Describe(context.Background(), c.program)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v, want an *Error", err)
			}
			if e.Code != c.code {
				t.Errorf("code %s, want %s (%v)", e.Code, c.code, err)
			}
			for _, want := range append(c.says, c.program.Name) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if names, err := filepath.Glob(r.dir + "/*"); err != nil || len(names) > 0 {
				t.Errorf("left behind: %v (%v)", names, err)
			}
		})
	}
}

func TestStart_AcceptsTheRightSum(t *testing.T) {
	r, _ := newRuntime(t, Options{})
	p := self(t, "plain")
	data, err := os.ReadFile(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	p.SHA256 = hex.EncodeToString(sum[:])
	if _, err := r.Describe(context.Background(), p); err != nil {
		t.Error(err)
	}
	p.SHA256 = strings.Repeat("11", 32)
	if _, err := r.Describe(context.Background(), p); !errors.Is(err, plugin.ErrChecksumsDoNotMatch) {
		t.Errorf("error %v", err)
	}
}

func TestStart_EndsWithItsContext(t *testing.T) {
	r, _ := newRuntime(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := r.Describe(ctx, self(t, "hangs")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func TestStart_GivesNoVariableThatIsNotNamed(t *testing.T) {
	t.Setenv("RLHOST_TEST_SECRET", "secret")
	t.Setenv("RLHOST_TEST_WANTED", "wanted")
	r, _ := newRuntime(t, Options{})
	p := self(t, "environment")
	p.Env = []string{"RLHOST_TEST_WANTED", "RLHOST_TEST_UNSET"}
	d, err := r.Describe(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	known := []string{"PATH", "HOME", "LANG", "TMPDIR", "RLHOST_PLUGIN", "RLHOST_TEST_WANTED", "PLUGIN_MIN_PORT",
		"PLUGIN_MAX_PORT", "PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_UNIX_SOCKET_DIR", "RLHOST_COMPONENT", "RLHOST_PROCESS",
		"RLHOST_TRANSPORT"}
	got := map[string]bool{}
	for _, line := range strings.Split(d.SDK, "\n") {
		name, _, _ := strings.Cut(line, "=")
		got[name] = true
		if !strings.Contains(" "+strings.Join(known, " ")+" ", " "+name+" ") {
			t.Errorf("the program has %s", line)
		}
	}
	if !got["RLHOST_TEST_WANTED"] || !got["PATH"] {
		t.Errorf("the program has only %v", got)
	}
}

func TestStart_HandsOverThreeFilesAndNoOther(t *testing.T) {
	extra, err := os.Open("/etc/hostname")
	if err != nil {
		t.Fatal(err)
	}
	defer extra.Close()
	r, _ := newRuntime(t, Options{})
	d, err := r.Describe(context.Background(), self(t, "files"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(d.SDK, "\n") {
		number, to, _ := strings.Cut(line, " ")
		n, err := strconv.Atoi(number)
		ours := strings.HasPrefix(to, "anon_inode:") || strings.HasPrefix(to, "/proc/") || strings.HasPrefix(to, "pipe:") ||
			strings.HasPrefix(to, "/sys/") || strings.Contains(to, "/cgroup")
		if err != nil || n > 5 && !ours {
			t.Errorf("the program has file %s ", line)
		}
	}
	if !strings.Contains(d.SDK, "3 socket:") || !strings.Contains(d.SDK, "4 /memfd:rlhost: to files") ||
		!strings.Contains(d.SDK, "5 /memfd:rlhost: from files") {
		t.Errorf("the program has\n%s", d.SDK)
	}
}

func TestOutput_GoesToTheLog(t *testing.T) {
	r, log := newRuntime(t, Options{})
	x := started(t, r, self(t, "talks"))
	defer x.Close()
	testkit.Until(t, "the long line is logged", func() bool { return strings.Contains(log.String(), "longlong") })
	x.Kill()
	<-x.Died()
	for _, want := range []string{
		`level=INFO msg="a library says hello" component=talks`,
		`level=WARN msg="low on memory" component=talks free=12`,
		`level=INFO msg="plain words" component=talks`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not have %s:\n%s", want, log)
		}
	}
	if strings.Contains(log.String(), "|unix|") {
		t.Errorf("the handshake is in the log")
	}
}

func TestOutput_OfAFloodIsLeftOutAndCounted(t *testing.T) {
	r, log := newRuntime(t, Options{})
	p := started(t, r, self(t, "floods"))
	defer p.Close()
	p.Kill()
	<-p.Died()
	printed, omitted := 0, 0
	for line := range strings.Lines(log.String()) {
		var lines, bytes int
		if _, words, found := strings.Cut(line, "lines were left out"); !found {
			printed += strings.Count(line, "xxxx"+strings.Repeat("x", 900))
		} else if _, err := fmt.Sscanf(words, "\" component=floods lines=%d bytes=%d", &lines, &bytes); err != nil || bytes != 999*lines {
			t.Errorf("%q: %v", words, err)
		}
		omitted += lines
	}
	if printed+omitted != 2*floodLines || len(log.String()) > 4*outputBurst {
		t.Errorf("%d lines in the log and %d left out, want %d; the log has %d bytes", printed, omitted, 2*floodLines, len(log.String()))
	}
}

// A process that has closed all its files can neither be asked nor say anything, and would print for ever that it cannot: it is reported
// at once, and its output is bounded.
func TestWire_ClosedByALivingProcessIsReported(t *testing.T) {
	r, log := newRuntime(t, Options{})
	broken := make(chan error, 3)
	p, err := r.Start(t.Context(), self(t, "closes"), StartOptions{Log: r.log, Broken: func(err error) { broken <- err }})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := <-broken; !errors.Is(err, errClosedWire) {
		t.Errorf("broken with %v", err)
	}
	p.Kill()
	<-p.Died()
	if n := len(log.String()); n > 2*outputBurst {
		t.Errorf("the log has %d bytes", n)
	}
}

// Waits name the process's number, the open call, how long it may take, and that the process is stopped.
func TestWaits_NameTheProcess(t *testing.T) {
	r, _ := newRuntime(t, Options{})
	d := make(chan error, 1)
	go func() {
		_, err := r.Describe(t.Context(), self(t, "hangs"))
		d <- err
	}()
	var told []string
	testkit.Until(t, "the wait is told", func() bool { told = r.Waits(); return len(told) > 0 })
	pid := 0
	if _, err := fmt.Sscanf(told[0], "process %d of plugin \"hangs\"", &pid); err != nil || !strings.Contains(told[0], "`start` of the plugin allows 10s") {
		t.Fatalf("told %q: %v", told, err)
	}
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "it is told that it is stopped", func() bool {
		told = r.Waits()
		return len(told) > 0 && strings.Contains(told[0], "stopped by a signal")
	})
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-d; err == nil {
		t.Error("a killed process has described itself")
	}
	if told := r.Waits(); len(told) > 0 {
		t.Errorf("told %q of a process that has ended", told)
	}
}

// groupsWork reports whether this process may make control groups.
func groupsWork(t *testing.T, r *Runtime) bool {
	f := r.groups.open()
	if f == nil {
		t.Log("this process can make no control groups")
		return false
	}
	r.groups.end(f)
	return true
}

func TestDeath_LeavesNoDescendant(t *testing.T) {
	for _, role := range []string{"leaves-a-child", "leaves-a-session", "leaves-a-stranger"} { // which hold the pipes
		r, _ := newRuntime(t, Options{})
		if role == "leaves-a-stranger" && !groupsWork(t, r) {
			continue
		}
		p := started(t, r, self(t, role))
		p.Kill()
		<-p.Died()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if got := p.child.end(); got != "was killed by signal 9 (SIGKILL)" {
			t.Errorf("%s: it %s", role, got)
		}
		descendant, err := strconv.Atoi(p.Description.SDK)
		if err != nil {
			t.Fatal(err)
		}
		testkit.Until(t, "the descendant ends", func() bool { return !testkit.ProcessRuns(descendant) })
	}
}

func TestFolder_OfAKilledHostGoesAtTheNextStart(t *testing.T) {
	parent, err := os.MkdirTemp("/tmp", "rl")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(parent)
	orphan := filepath.Join(parent, folderPrefix+strconv.Itoa(os.Getpid())+"-1-77") // our number, another start
	stranger := filepath.Join(parent, folderPrefix+"notes")
	for _, dir := range []string{orphan, stranger} {
		if err := os.MkdirAll(filepath.Join(dir, "p1"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	first, _ := newRuntime(t, Options{Dir: parent})
	_, _ = newRuntime(t, Options{Dir: parent})
	if _, err := os.Stat(orphan); !os.IsNotExist(err) {
		t.Error("the orphan's folder is still there")
	}
	info, err := os.Stat(first.dir)
	if err != nil {
		t.Fatal("the folder of a runtime that lives was removed")
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode of the folder %v, want 0700", info.Mode())
	}
	if _, err := os.Stat(stranger); err != nil {
		t.Error("a folder that is not a runtime's was removed")
	}
}

func TestStart_WithoutAFolderForSocketsNothingIsRun(t *testing.T) {
	r, _ := newRuntime(t, Options{})
	if err := os.RemoveAll(r.dir); err != nil {
		t.Fatal(err)
	}
	_, err := r.Start(context.Background(), self(t, "plain"), StartOptions{Log: r.log})
	var refused *Error
	if !errors.As(err, &refused) || refused.Code != CodeStart || !strings.Contains(refused.Reason, r.dir) {
		t.Errorf("start = %v, want %s that names %s", err, CodeStart, r.dir)
	}
}
