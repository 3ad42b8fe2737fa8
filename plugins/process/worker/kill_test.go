package worker

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/internal/spawntest"
	"github.com/rlhost/rlhost/plugins/process/spawn"
	rolloutplugin "github.com/rlhost/rlhost/plugins/rollout"
)

// childrenOf returns the processes that a process has started with an argument.
func childrenOf(parent int, arg string) []int {
	var pids []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		cmdline, _ := os.ReadFile(filepath.Dir(path) + "/cmdline")
		if len(fields) > 1 && fields[0] != "Z" && fields[1] == strconv.Itoa(parent) && slices.Contains(strings.Split(string(cmdline), "\x00"), arg) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// openFilesNow counts the files that this process has open, and its mappings of memory files.
func openFilesNow(t *testing.T) (files, mappings int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries), strings.Count(string(maps), "/memfd:")
}

// mill is a rollout whose requests are answered at once, and whose blocks are looked at.
type mill struct {
	*plugintest.Rig
	answers *bus.Signal
	made    uint64 // rows of environments that were asked for
	blocks  int
	silent  bool
	valid   uint64 // rows that were handed over
	invalid uint64
	wrong   error
	last    map[int][]float32 // newest valid observation of each environment of a running episode
}

const millEnvs, millHorizon = 6, 8

func newMill(t *testing.T, p env.Plugin) *mill {
	t.Helper()
	m := &mill{last: map[int][]float32{}}
	m.Rig = plugintest.NewRig(t, rolloutplugin.New(), plugintest.RigOptions{Name: "rollout", Envs: map[string]env.Plugin{"e": p}},
		func(into any) error {
			c := reflect.ValueOf(into).Elem()
			c.FieldByName("Env").SetString("e")
			c.FieldByName("Envs").SetInt(2 * millEnvs)
			c.FieldByName("Splits").SetInt(2)
			c.FieldByName("Horizon").SetInt(millHorizon)
			c.FieldByName("MaxRestarts").SetInt(1 << 20)
			return nil
		})
	m.answers = m.ToOnLoan("on_actions")
	m.From("obs_ready", m.onAsk)
	m.From("trajectories", m.onBlock)
	return m
}

func (m *mill) onAsk(q *hostabi.Message) {
	if m.silent {
		return
	}
	r := trajectory.ActRequestOf(q)
	tr, err := trajectory.Borrowed(m.Host.Arenas, r.Block)
	if err != nil {
		m.Host.Fail(err)
		return
	}
	if !r.ValueOnly {
		m.made += millEnvs
		for env := range millEnvs {
			tr.Int32(trajectory.Action)[r.T*millEnvs+env] = int32((r.Step + uint64(env)) % 2)
		}
	}
	if err := m.answers.Emit(hostabi.Message{T: q.T, Split: q.Split, Inline: q.Inline, Handle: q.Handle, PolicyVersion: 1}); err != nil {
		m.Host.Fail(err)
	}
}

// onBlock checks that the rows of each environment hold consecutive steps.
func (m *mill) onBlock(b *hostabi.Message) {
	tr, lease, err := trajectory.Lease(m.Host.Arenas, b.Handle)
	if err != nil {
		m.Host.Fail(err)
		return
	}
	defer lease.Release()
	m.blocks++
	for row := range millHorizon {
		for env := range millEnvs {
			if err := m.row(tr, row, env); err != nil && m.wrong == nil {
				m.wrong = fmt.Errorf("block %d of split %d, row %d: %w", tr.Meta().Sequence, b.Split, row, err)
			}
		}
	}
}

func (m *mill) row(tr trajectory.Trajectory, row, env int) error {
	i := row*millEnvs + env
	global := int(tr.Meta().FirstEnv) + env
	obs := tr.Row(trajectory.Obs, row).Float32()[env*plugintest.ObsElems:][:plugintest.ObsElems]
	last := m.last[global]
	ended := tr.Bytes(trajectory.Terminated)[i]|tr.Bytes(trajectory.Truncated)[i] != 0
	if tr.Bytes(trajectory.Valid)[i] == 0 {
		m.invalid++
		delete(m.last, global)
		if ended || tr.Float32(trajectory.Reward)[i] != 0 {
			return fmt.Errorf("the lost row of environment %d tells of something", global)
		}
		return nil
	}
	m.valid++
	if int(obs[plugintest.ObsEnv]) != global {
		return fmt.Errorf("environment %d observes %v", global, obs)
	}
	step := obs[plugintest.ObsStep]
	if row == 0 && step == 0 {
		last = nil // a worker that dies between two blocks begins the next one afresh and loses no step
	}
	if last != nil && step != last[plugintest.ObsStep]+1 || last == nil && step != 0 {
		return fmt.Errorf("environment %d observes %v after %v", global, obs, last)
	}
	if m.last[global] = slices.Clone(obs); ended {
		delete(m.last, global)
	}
	return nil
}

func TestKills_LoseStepsAndNothingElse(t *testing.T) {
	filesBefore, mapsBefore := 0, 0
	wanted := testkit.Kills(t, 30)
	t.Run("run", func(t *testing.T) {
		p := loadIn(t, 3, env.Source{Use: "scripted@1"})
		filesBefore, mapsBefore = openFilesNow(t)
		m := newMill(t, p)
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		done := make(chan struct{})
		var killer sync.WaitGroup
		killed := 0
		killer.Go(func() {
			defer close(done)
			random := rand.New(rand.NewPCG(seed, 1))
			for killed < wanted {
				time.Sleep(time.Duration(random.IntN(60_000)) * time.Microsecond) // a random moment
				if pids := childrenOf(os.Getpid(), "env"); len(pids) > 0 && unix.Kill(pids[random.IntN(len(pids))], unix.SIGKILL) == nil {
					killed++
				}
			}
		})
		over := func() bool {
			select {
			case <-done:
				return true
			default:
				return false
			}
		}
		blocks := 0
		for !over() {
			blocks = m.blocks + 20
			m.MustRun(func() bool { return m.blocks >= blocks || over() })
		}
		killer.Wait()
		m.finish(t, killed)
	})
	if left := childrenOf(os.Getpid(), "env"); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	// The plugin itself was open when files were counted, so there are fewer now.
	if files, maps := openFilesNow(t); files > filesBefore || maps > mapsBefore {
		t.Errorf("%d files and %d mappings, before there were %d and %d", files, maps, filesBefore, mapsBefore)
	}
}

// finish stops the mill and compares sums.
func (m *mill) finish(t *testing.T, killed int) {
	t.Helper()
	m.silent = true
	m.MustSettle()
	counter := func(name string) uint64 { return m.Host.Stats.Counter(name).Value() }
	trained, lost := counter("rollout/env_steps"), counter("rollout/lost_env_steps")
	unfinished := m.made - uint64(m.blocks)*millHorizon*millEnvs
	lostThere := lost - m.invalid
	t.Logf("%d killed, %d times environments were lost: %d env steps made = %d trained + %d lost + %d in unfinished blocks, %d episodes lost",
		killed, counter("rollout/restarts"), m.made, trained, lost, unfinished-lostThere, counter("rollout/lost_episodes"))
	if strings.Contains(m.Log.String(), "environments restarted") {
		t.Errorf("a kill has cost a block: %s", m.Log.String())
	}
	if trained != m.valid || lostThere > unfinished || unfinished > 2*millHorizon*millEnvs || m.made != trained+lost+unfinished-lostThere {
		t.Errorf("%d rows made, in %d blocks: %d valid and %d lost; counted are %d and %d", m.made, m.blocks, m.valid, m.invalid, trained, lost)
	}
	if m.wrong != nil {
		t.Error(m.wrong)
	}
}

// playEnvHost is the role of a host that is killed: it makes two batches and says which processes it has.
func playEnvHost(cache string) {
	fail := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	r, err := spawn.New(spawn.Options{})
	fail(err)
	path, err := os.Executable()
	fail(err)
	p, err := Load(context.Background(), r, spawn.Program{Name: "env", Path: path, Args: []string{"env", cache}}, Options{Source: env.Source{Use: "scripted@1"}, Workers: 2})
	fail(err)
	for range 2 {
		_, err := p.NewEnv(env.Options{Name: "x", Envs: 4, Autoreset: hostabi.SameStep})
		fail(err)
	}
	fmt.Println("ready")
	select {}
}

func TestHostDeath_LeavesNoProcess(t *testing.T) {
	host := exec.Command(spawntest.Self(t, "env-host").Path, "env-host", cacheFolder(t))
	host.Env = append(os.Environ(), native.CookieKey+"="+native.CookieValue)
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	pids := childrenOf(host.Process.Pid, "env")
	if len(pids) != 4 {
		t.Errorf("%d processes for two batches in two each", len(pids))
	}
	var files []unix.PollFd
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		files = append(files, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait() // it was killed
	for i := range files {
		if n, err := unix.Poll(files[i:i+1], 10_000); n != 1 {
			t.Errorf("process %d lives on without its host: %v", pids[i], err)
		}
	}
}
