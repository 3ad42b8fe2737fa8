package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/control/text"
	places "github.com/rlhost/rlhost/core/place"
)

// at describes where a process is: its processors, its priority and the threads that its libraries may have.
func at(pid int) string {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // a process that has ended is nowhere
	_, cores, _ := strings.Cut(string(status), "Cpus_allowed_list:\t")
	cores, _, _ = strings.Cut(cores, "\n")
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	nice := "?"
	if fields := strings.Fields(rest); len(fields) > 16 {
		nice = fields[16]
	}
	threads := "any"
	environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	for variable := range strings.SplitSeq(string(environ), "\x00") {
		if n, ok := strings.CutPrefix(variable, "OMP_NUM_THREADS="); ok {
			threads = n
		}
	}
	return fmt.Sprintf("cores %s nice %s threads %s", cores, nice, threads)
}

// Processes of components and of environments run where the file says, also after they have been killed and after a reload, and status says so.
func TestPlace_ProcessesAreWhereTheFileSays(t *testing.T) {
	t.Parallel()
	all, err := places.Available()
	if err != nil {
		t.Fatal(err)
	}
	last := all[len(all)-1:].String()
	w := newWorkshop(t)
	w.write("placed.toml", strings.NewReplacer("20480", "2_000_000_000", `"cartpole@1"`, `"cartpole@1"
runtime = "process"
cores = "`+last+`"
nice = 7
library_threads = 1`).Replace(plain)+`
[group.learning]
components = ["learner"]
nice = 5
[component.learner]
runtime = "process"
lr_anneal_env_steps = 0
cores = "`+last+`"
threads = 2
`)
	j := w.host("placed.toml")
	j.goesOn()
	environment, learner := "cores "+last+" nice 7 threads 1", "cores "+last+" nice 5 threads 2"
	placed := func(want string) func() bool {
		return func() bool {
			for _, pid := range j.processes() {
				if at(pid) == want {
					return true
				}
			}
			return false
		}
	}
	j.within("environments at "+environment, placed(environment))
	pid := j.pidOf("learner")
	if got := at(pid); got != learner {
		t.Errorf("the learner is at %s, want %s", got, learner)
	}
	s := j.status()
	for _, want := range []string{"group learning; cores " + last + ", nice 5, 2 threads", "environments: cores " + last + ", nice 7, 1 thread"} {
		if shown := text.Status(&s); !strings.Contains(shown, want) {
			t.Errorf("status says\n%s\nwithout %q", shown, want)
		}
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	j.within("another learner at the same place", func() bool { now := j.pidOf("learner"); return now != pid && now != 0 && at(now) == learner })
	j.goesOn()
	j.reload("placed.toml", "component.learner.threads=3")
	if got, want := at(j.pidOf("learner")), "cores "+last+" nice 5 threads 3"; got != want {
		t.Errorf("after a reload the learner is at %s, want %s", got, want)
	}
	j.goesOn()
	j.fails(control.VerbReload, w.reloadWith("placed.toml", "component.learner.cores="+strconv.Quote("1023")), control.CodeBad, `error\[E129\]: component "learner" has cores 1023`)
	j.stop()
}
