package main

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/channel"
	"github.com/rlhost/rlhost/core/channel/remote"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
)

// sharedRun is a run that shares the channel jobs with a machine that has joined over a cable. Each machine has a runtime folder of its own.
type sharedRun struct {
	*workshop
	job         *subject
	cable       *testkit.Cable
	here, there string // folders
	jobs        *remote.Client
	joined      *exec.Cmd
}

const sharedPipeline = `rlhost = 1
[run]
name = "shared"
stop = { env_steps = 1_000_000_000_000 }
[env.cartpole]
use = "cartpole@1"
[component.rollout]
kind = "rollout"
env = "cartpole"
[component.random]
kind = "random"
[component.logger]
runtime = "wasm"
use = "./episodes.wasm"
grants = ["log", "metric"]
[cluster]
listen = "127.0.0.1:0"
shares = ["jobs", "ana/scores"]
[[wire]]
signal = "rollout.obs_ready"
slot = "random.act"
[[wire]]
signal = "random.actions"
slot = "rollout.on_actions"
[[wire]]
signal = "rollout.episodes"
slot = "logger.on_episodes"
`

func shareRun(t *testing.T, maxsize string) *sharedRun {
	t.Helper()
	r := &sharedRun{workshop: newWorkshop(t), here: testkit.SocketFolder(t), there: testkit.SocketFolder(t)}
	r.write("shared.toml", sharedPipeline)
	r.copy("episodes.wasm", "../../examples/plugins/episodes-c/episodes.wasm")
	t.Setenv("XDG_RUNTIME_DIR", r.here)
	r.serves("channel", "serve", "jobs", "--maxsize", maxsize)
	r.jobs = r.connect(r.here)
	r.job = r.beginWith("run", false, "shared.toml")
	r.job.within("it listens", func() bool { _, err := os.Stat(r.job.dir + "/join.token"); return err == nil })
	status := r.job.output.String()
	_, with, _ := strings.Cut(status, "rlhost join ")
	address, _, _ := strings.Cut(with, " ")
	r.cable = testkit.NewCable(t, address)
	r.join()
	return r
}

// serves starts a program in the background.
func (r *sharedRun) serves(args ...string) *exec.Cmd {
	r.t.Helper()
	c := r.command(args...)
	if err := c.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()
	})
	return c
}

// join joins from the other machine, and waits until the channel is there.
func (r *sharedRun) join() {
	r.t.Helper()
	r.env = []string{"XDG_RUNTIME_DIR=" + r.there}
	r.joined = r.serves("join", r.cable.Address(), "--token-file", r.job.dir+"/join.token", "--name", "b", "--slots", "0")
	r.env = nil
	if err := r.connect(r.there).Close(); err != nil {
		r.t.Error(err)
	}
}

// connect connects to the channel as a program of one of the machines does, once it is there.
func (r *sharedRun) connect(folder string) (c *remote.Client) {
	r.t.Helper()
	r.t.Setenv("XDG_RUNTIME_DIR", folder)
	defer r.t.Setenv("XDG_RUNTIME_DIR", r.here)
	var err error
	testkit.Until(r.t, "the channel is served", func() bool { c, err = remote.Connect("jobs"); return err == nil })
	r.t.Cleanup(func() { _ = c.Close() }) // it may be lost
	return c
}

func (r *sharedRun) stat() channel.Stat {
	r.t.Helper()
	s, err := r.jobs.Stat(r.t.Context(), "k")
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func itemOf(n, size int) channel.Item {
	data := make([]byte, 8+size)
	for i := range data {
		data[i] = byte(n)
	}
	binary.LittleEndian.PutUint64(data, uint64(n))
	return channel.Item{Weight: 1, Data: data}
}

// Items of all sizes go both ways, once and in their order, while the network is cut for less than a lease.
func TestShared_ItemsArriveOnceAcrossCuts(t *testing.T) {
	r := shareRun(t, "50")
	there := r.connect(r.there)
	sizes := []int{0, 1000, 60_000, 70_000, 1 << 20}
	const items = 300
	done := make(chan struct{})
	var cutting, moving sync.WaitGroup
	cutting.Go(func() {
		for range 3 {
			select {
			case <-done:
			case <-time.After(200 * time.Millisecond):
			}
			r.cable.Cut()
			r.cable.Mend()
		}
	})
	for key, way := range map[string][2]*remote.Client{"to the run": {there, r.jobs}, "from the run": {r.jobs, there}} {
		moving.Go(func() {
			for n := range items {
				if err := way[0].Put(t.Context(), key, itemOf(n, sizes[n%len(sizes)])); err != nil {
					t.Errorf("%s: %v", key, err)
					return
				}
			}
		})
		moving.Go(func() {
			for n := 0; n < items; {
				got, err := way[1].GetBatch(t.Context(), key, channel.Batch{Weight: float64(min(7, items-n))})
				if err != nil {
					t.Errorf("%s: %v", key, err)
					return
				}
				for _, i := range got {
					if want := itemOf(n, sizes[n%len(sizes)]); string(i.Data) != string(want.Data) {
						t.Errorf("%s: item %d has %d bytes, want %d", key, n, len(i.Data), len(want.Data))
					}
					n++
				}
			}
		})
	}
	moving.Wait()
	close(done)
	cutting.Wait()
	if s := r.stat(); s.Puts != 2*items || s.Gets != 2*items || s.Lost != 0 || s.Items != 0 {
		t.Errorf("%+v", s)
	}
}

// A machine that is cut off for longer than its lease, or is killed, loses what its programs held, and nothing else: that is counted. Its programs
// are told, and can connect again.
func TestShared_LostMachinesAreCounted(t *testing.T) {
	r := shareRun(t, "50")
	for what, ends := range map[string][2]func(){
		"it is cut off": {r.cable.Cut, r.cable.Mend},
		"it is killed":  {func() { _ = r.joined.Process.Kill() }, r.join},
	} {
		before := r.stat()
		there := r.connect(r.there)
		for n := range 10 {
			if err := r.jobs.Put(t.Context(), "k", itemOf(n, 70_000*(n%2))); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := there.GetBatch(t.Context(), "k", channel.Batch{Weight: 4}); err != nil || len(got) != 4 {
			t.Fatalf("%d items, %v", len(got), err)
		}
		waits := make(chan error, 1)
		go func() { _, err := there.Get(t.Context(), "empty"); waits <- err }()
		testkit.Until(t, "a get waits", func() bool { return r.stat().WaitingGets == 1 })
		ends[0]()
		var coded *control.Error
		if err := <-waits; !errors.As(err, &coded) || coded.Code != remote.CodeLost {
			t.Errorf("%s: a call that waits ends with %v", what, err)
		}
		testkit.Until(t, "what waited is forgotten", func() bool { return r.stat().WaitingGets == 0 })
		rest, err := r.jobs.GetBatch(t.Context(), "k", channel.Batch{Weight: 10, Wait: time.Second})
		if err != nil || len(rest) != 6 || binary.LittleEndian.Uint64(rest[0].Data) != 4 {
			t.Errorf("%s: %d items are left, %v", what, len(rest), err)
		}
		// The get that waited had said that the batch was used.
		if now := r.stat(); now.Lost != before.Lost || now.Puts-before.Puts != 10 || now.Gets-before.Gets != 10 {
			t.Errorf("%s: %+v, before it %+v", what, now, before)
		}
		ends[1]()
		again := r.connect(r.there)
		if err := again.Put(t.Context(), "back", itemOf(1, 1<<20)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := r.jobs.Get(t.Context(), "back"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	there := r.connect(r.there)
	for n := range 3 {
		if err := r.jobs.Put(t.Context(), "k", itemOf(n, 70_000*(n%2))); err != nil {
			t.Fatal(err)
		}
	}
	before := r.stat().Lost
	if got, err := there.GetBatch(t.Context(), "k", channel.Batch{Weight: 3}); err != nil || len(got) != 3 {
		t.Fatalf("%d items, %v", len(got), err)
	}
	_ = r.joined.Process.Kill()
	testkit.Until(t, "what it had is counted", func() bool { return r.stat().Lost == before+3 })
}

// A program in Python cannot tell the difference: arrays in shared memory both ways, answers and errors of components, and the end of the run.
func TestShared_ProgramsInPython(t *testing.T) {
	r := shareRun(t, "50")
	python := r.python()
	r.write("there.py", `
import numpy
import rlhost

jobs = rlhost.Channel.connect("jobs", timeout=30)
first = jobs.get(timeout=30)
assert first["x"].sum() == 499999500000, first
first["x"] += 1
jobs.put(first, key="back", weight=2)
with rlhost.connect("shared/0001", timeout=30) as run:
    assert run.request("logger", "longest") >= 0
    try:
        run.request("logger", "nothing")
        raise SystemExit("a request that there is not")
    except rlhost.RequestError as e:
        print(e.code, e)
    print(run.status("logger"))
try:
    while True:
        jobs.get(timeout=30)
except rlhost.channel.ChannelError as e:
    print("ended", e)
`)
	r.write("here.py", `
import numpy
import rlhost

jobs = rlhost.Channel.connect("jobs", timeout=30)
jobs.put({"x": numpy.arange(1_000_000)})
back = jobs.get(key="back", timeout=30)
assert back["x"].sum() == 499999500000 + 1_000_000
print("back")
`)
	far, said := r.runs(python, r.there, "there.py")
	near, out := r.runs(python, r.here, "here.py")
	if err := near.Wait(); err != nil || !strings.Contains(out.String(), "back") {
		t.Errorf("here: %v\n%s", err, out)
	}
	testkit.Until(t, "the program there has been answered", func() bool {
		return strings.Contains(said.String(), "RUNNING") || strings.Contains(said.String(), "Traceback")
	})
	if err := r.job.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := far.Wait(); err != nil || !strings.Contains(said.String(), "ended") || !strings.Contains(said.String(), "E12") {
		t.Errorf("there: %v\n%s", err, said)
	}
}

// runs starts a script as a program of one of the machines.
func (r *sharedRun) runs(python, folder, script string) (*exec.Cmd, *testkit.Buffer) {
	r.t.Helper()
	out := &testkit.Buffer{}
	c := exec.Command(python, "-u", r.path(script))
	c.Dir, c.Env, c.Stdout, c.Stderr = r.dir, append(os.Environ(), "XDG_RUNTIME_DIR="+folder), out, out
	if err := c.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = c.Process.Kill() // it has ended, unless the test has failed
		_ = c.Wait()
	})
	return c, out
}

// A server that the file shares answers programs on a machine that has joined as it does here, also what its handlers raise. One that the file does
// not share is not there, and one that ends is gone there too.
func TestShared_AServerIsAskedFromThere(t *testing.T) {
	r := shareRun(t, "50")
	python := r.python()
	r.write("here.py", `
import rlhost

scores = {}

def add(player: str, points: int) -> int:
    if points < 0:
        raise ValueError(f"{points} points for {player}")
    scores[player] = scores.get(player, 0) + points
    return scores[player]

with rlhost.Server("ana/private"), rlhost.Server("ana/scores") as server:
    server.register_handler("add", add)
    server.register_handler("text", lambda size: "x" * size)
    server.register_handler("end", server.close)
    server.serve()
print("has", scores)
`)
	r.write("there.py", `
import rlhost

with rlhost.connect(server="ana/scores", timeout=30) as client:
    for n in range(1, 4):
        assert client.request("ana/scores", "add", player="bo", points=n) == n * (n + 1) // 2
    assert len(client.request("ana/scores", "text", size=100_000)) == 100_000
    for args in ({"player": "bo", "points": -1}, {"player": "bo"}):
        try:
            client.request("ana/scores", "add", **args)
            raise SystemExit(f"{args} are taken")
        except rlhost.RequestError as e:
            print(e.code, e)
    try:
        rlhost.connect(server="ana/private")
        raise SystemExit("a server that is not shared is there")
    except (rlhost.WorkerLost, OSError) as e:
        print("private", e)
    try:
        client.request("ana/scores", "end")
    except (rlhost.RequestError, OSError):
        pass  # it has ended before its answer was there
print("done")
`)
	near, out := r.runs(python, r.here, "here.py")
	far, said := r.runs(python, r.there, "there.py")
	if err := far.Wait(); err != nil || !strings.Contains(said.String(), "E122 ") || !strings.Contains(said.String(), "-1 points for bo") || !strings.Contains(said.String(), "E121 ") {
		t.Fatalf("there: %v\n%s", err, said)
	}
	if err := near.Wait(); err != nil || !strings.Contains(out.String(), "has {'bo': 6}") {
		t.Errorf("here: %v\n%s", err, out)
	}
	testkit.Until(t, "the server is gone there", func() bool {
		_, err := os.Stat(filepath.Join(r.there, "rlhost", filepath.Base(control.ServerPath("ana/scores"))))
		return errors.Is(err, os.ErrNotExist)
	})
}
