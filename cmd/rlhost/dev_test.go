package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
)

// walkBuild builds walk.wasm from walk.c without a compiler: the source names a module, or what goes wrong.
const walkBuild = `set -eu
case $(cat walk.c) in
hangs) sleep 1000 & echo $! >hung; wait ;;
nothing) rm -f walk.wasm ;;
broken*) echo "walk.c:1:1: error: broken" >&2; exit 1 ;;
*) cp "$(cat walk.c)" walk.wasm ;;
esac
`

// saves is rlhost dev in a workshop, and what a test saves there.
type saves struct {
	*subject
	read int // of the output
}

// save writes a file as an editor does, and waits for a line that matches.
func (s *saves) save(name, text, want string) {
	s.t.Helper()
	s.w.write(name+"~", text)
	if err := os.Rename(s.w.path(name+"~"), s.w.path(name)); err != nil {
		s.t.Fatal(err)
	}
	s.line(want)
}

// shown is what has been printed, without the lines of progress.
func (s *saves) shown() string {
	return progress.ReplaceAllString(s.output.String(), "")
}

// progress are the lines that a training prints each second.
var progress = regexp.MustCompile(`(?m)^.* env steps [0-9.].* per s .*\n`)

// lazily is a text that is made when it is printed.
type lazily func() string

func (l lazily) String() string { return l() }

// line waits for output that matches, and for env steps after it.
func (s *saves) line(want string) {
	s.t.Helper()
	pattern := regexp.MustCompile(want)
	var at []int
	testkit.Until(s.t, want, func() bool {
		at = pattern.FindStringIndex(s.output.String()[s.read:])
		return at != nil || s.over()
	}, lazily(s.shown))
	if at == nil {
		s.t.Fatalf("rlhost dev has ended with %d:\n%s", s.code, s.output)
	}
	s.t.Logf("%s", s.output.String()[s.read+at[0]:s.read+at[1]])
	s.read += at[1]
	s.goesOn()
}

// beginDev starts rlhost dev.
func (w *workshop) beginDev(args ...string) *saves {
	w.t.Helper()
	j := &subject{t: w.t, w: w, output: &testkit.Buffer{}, ended: make(chan struct{})}
	j.cmd = w.command(append([]string{"dev"}, args...)...)
	j.cmd.Stdout, j.cmd.Stderr = j.output, j.output
	if err := j.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		_ = j.cmd.Wait() // its code says how it ended
		j.code = j.cmd.ProcessState.ExitCode()
		close(j.ended)
	}()
	w.t.Cleanup(j.kill)
	return &saves{subject: j}
}

// begins waits until the training answers.
func (s *saves) begins() {
	s.t.Helper()
	s.within("it has begun", func() bool {
		s.look()
		return s.dir != "" || s.over()
	})
	s.client = s.dial()
	s.goesOn()
}

// Whatever is saved, the training continues, and a line says what came of it: a build that fails, hangs or writes nothing, a version that
// fails a check before or after it took over, or traps; a mistake in the pipeline; files that come, go, or have odd names.
func TestDev_BringsSavesIn(t *testing.T) {
	t.Parallel()
	w := newSwapShop(t)
	w.copy("steady.module", faultyGuests+"/steady.wasm")
	w.copy("faulty.module", faultyGuests+"/faulty.wasm")
	w.copy("other.module", faultyGuests+"/discount.wasm")
	text := strings.NewReplacer(`use = "./walk.wasm"`, `use = "./walk.wasm"`+"\nbuild = \"sh build.sh\"\nbuild_timeout = \"20s\"", "0s", "60s").Replace(jobOf("walk", "walk.wasm"))
	w.write("pipeline.toml", text)
	w.write("build.sh", walkBuild)
	w.write("walk.c", "broken")
	if err := os.Remove(w.path("walk.wasm")); err != nil {
		t.Fatal(err)
	}
	s := w.beginDev()
	testkit.Until(t, "the first build fails", func() bool { return strings.Contains(s.output.String(), "walk.c:1:1: error: broken") }, s.output)
	w.write("walk.c", "steady.module")
	s.begins()
	took := `first step [0-9.]+ s after the save`

	s.save("walk.c", "faulty.module", `walk.c: built walk.wasm in .*(A01, M01, M02 ok|no check came to its end) in .*16 envs of rollout swapped · `+took+` · [0-9]+ checks ok`)
	s.save("walk.c", "broken", `walk.c: the run continues as it is: error\[E152\]: pipeline.toml:9: the build of env.walk failed \(exit status 1\): sh build.sh\nwalk.c:1:1: error: broken`)
	s.save("walk.c", "nothing", `error\[E154\]: pipeline.toml:9: the build of env.walk ended well and did not write walk.wasm`)
	s.save("walk.c", "other.module", `walk.c: built walk.wasm in .* · the run continues as it is: .*E047|E07`)
	s.save("walk.c", "faulty.module", `walk.c: built walk.wasm in .*nothing to change`)
	s.save("pipeline.toml", strings.Replace(text, "20s", "300ms", 1), `pipeline.toml: nothing to change`)
	s.save("walk.c", "hangs", `error\[E153\]: pipeline.toml:9: the build of env.walk did not end within 300ms`)
	if pid, err := strconv.Atoi(strings.TrimSpace(w.read("hung"))); err != nil || testkit.ProcessRuns(pid) {
		t.Errorf("the process of a build that hung runs still: %d, %v", pid, err)
	}
	s.save("pipeline.toml", text, `pipeline.toml: nothing to change`)
	s.save("walk.c", "faulty.module", `walk.c: built walk.wasm in [0-9.]+ s, as it was · nothing to change`)

	args := func(fault string) string { return strings.Replace(text, "[train]", "args = { "+fault+" }\n[train]", 1) }
	s.save("pipeline.toml", args("fault=6"), `pipeline.toml: .*taken back, and the previous version of rollout runs again: .*check D03 fails`)
	s.save("pipeline.toml", args("fault=1, env=15, step=999"), `pipeline.toml: .*taken back, and the previous version of rollout runs again: .*trap in rl_step at step 999`)
	s.save("pipeline.toml", strings.Replace(text, "epochs = 1", "epochs = 1.5", 1), `pipeline.toml: the run continues as it is: pipeline.toml:[0-9]+:10: error\[E003\]`)
	s.save("pipeline.toml", strings.Replace(text, "epochs = 1", "epochs = 2", 1), `pipeline.toml: component learner: epochs 1 → 2`)

	w.write("walk.c", "broken")
	s.save("walk.c", "steady.module", `walk.c: built walk.wasm in .*envs of rollout swapped`)
	if err := os.Remove(w.path("walk.c")); err != nil {
		t.Fatal(err)
	}
	s.line(`walk.c \(deleted\): the run continues as it is: error\[E152\]`)
	s.save("walk.c", "faulty.module", `walk.c: built walk.wasm in .*swapped · `+took)
	s.save("a b\x1b[2J\n'\".c", "", `"a b\\x1b\[2J\\n'\\".c": built walk.wasm in .*nothing to change`)
	if err := os.Rename(w.path("pipeline.toml"), w.path("pipeline.tmp")); err != nil {
		t.Fatal(err)
	}
	s.line(`pipeline.toml \(deleted\): the run continues as it is: warning\[W128\]`)
	if err := os.Rename(w.path("pipeline.tmp"), w.path("pipeline.toml")); err != nil {
		t.Fatal(err)
	}
	s.line(`pipeline.toml: nothing to change`)

	if got := s.status().Swaps; got.RolledBack != 2 {
		t.Errorf("%+v, want two versions taken back", got)
	}
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	s.ends(exitInterrupted)
}

// A training of another process is kept up to date as well, and rlhost dev ends with it.
func TestDev_FollowsARunningTraining(t *testing.T) {
	t.Parallel()
	w := newSwapShop(t)
	w.write("pipeline.toml", w.read("walk.toml"))
	j := w.host()
	s := w.beginDev("--run", "job")
	testkit.Until(t, "it watches", func() bool { return strings.Contains(s.output.String(), "W127") }, s.output)
	s.dir, s.client = j.dir, j.dial()
	w.copy("walk.wasm", faultyGuests+"/steady.wasm")
	s.line(`walk.wasm: .*16 envs of rollout swapped · first step`)
	j.do(control.VerbStop, control.StopRequest{}, nil)
	s.within("it ends", s.over)
	if s.code != exitOK || !strings.Contains(s.output.String(), "job/0001 has ended") {
		t.Errorf("it ended with %d:\n%s", s.code, s.output)
	}
	j.ends(exitOK)
}

// What rlhost new makes in C++ and AssemblyScript is built at each save and brought in, and a mistake is told with file and line by the compiler.
// The build of the second asks a registry: make test-langs.
func TestNew_DevBringsSavesIn(t *testing.T) {
	if os.Getenv("RLHOST_LONG") == "" {
		t.Skip("make test-langs makes folders in all languages")
	}
	for lang, mistake := range map[string]string{"cpp": `maze.cpp:[0-9]+:1: error: `, "as": `in maze.ts\([0-9]+,1\)`} {
		t.Run(lang, func(t *testing.T) {
			w := newWorkshop(t)
			out, err := w.command("new", "env", "maze", "--lang", lang).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if strings.Contains(string(out), codeNoCompiler) {
				t.Skipf("no compiler of %s is here", lang)
			}
			w.dir = w.path("maze")
			source := map[string]string{"cpp": "maze.cpp", "as": "maze.ts"}[lang]
			text := w.read(source)
			changed := strings.Replace(text, ">= 50", ">= 49", 1)
			s := w.beginDev()
			s.begins()
			s.save(source, changed, source+`: built maze.wasm in .*(A01, M01, M02 ok|no check came to its end) in .* envs of rollout swapped · first step [0-9.]+ s after the save`)
			s.save(source, text+"broken broken;\n", source+`: the run continues as it is: error\[E152\]: (?s:.*)`+mistake)
			s.save(source, text, source+`: built maze.wasm in .*swapped · first step`)
		})
	}
}
