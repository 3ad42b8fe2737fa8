package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/ring"
	"github.com/rlhost/rlhost/core/shm"
)

// cells is the capacity of our ring: as many messages as faster-fifo's 100,000 bytes hold.
const cells = 4096

// mix is one case of the table.
type mix struct {
	producers, consumers int
	each                 uint64 // messages of a producer
	put, get             int    // batches
}

func (m mix) String() string {
	return fmt.Sprintf("%d→%d put %d get %d", m.producers, m.consumers, m.put, m.get)
}

func (m mix) total() uint64 { return m.each * uint64(m.producers) }

// rate returns messages per second.
func (m mix) rate(ns uint64) float64 { return float64(m.total()) * 1e9 / float64(ns) }

// messages runs a mix of one producer and one consumer over our ring of messages: it starts the processes, opens the
// gate, and returns the rate from then to the last message taken.
func messages(m mix) (float64, error) {
	r, err := ring.New("bench", cells)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	seg, err := shm.Create("board", boardBytes)
	if err != nil {
		return 0, err
	}
	defer seg.Close()
	children := []*exec.Cmd{command(task{"put", m.each, m.put}), command(task{"get", m.each, m.get})}
	for _, c := range children {
		if err := start(c, seg.FD(), r.FD()); err != nil {
			return 0, err
		}
	}
	b := boardOf(seg)
	for int(b.ready.Load()) != len(children) {
		time.Sleep(200 * time.Microsecond)
	}
	time.Sleep(2 * time.Millisecond) // until both sleep in front of the gate
	started := now()
	b.gate.Store(1)
	shm.Wake(&b.gate)
	for _, c := range children {
		if err := c.Wait(); err != nil {
			return 0, err
		}
	}
	if b.got.count != m.each || b.got.sum != m.each*(m.each+1)/2 {
		return 0, fmt.Errorf("%v: %d messages of sum %d arrived", m, b.got.count, b.got.sum)
	}
	return m.rate(b.got.finished - started), nil
}

func command(t task) *exec.Cmd {
	c := exec.Command("/proc/self/exe", t.args()...)
	c.Stderr = os.Stderr
	return c
}

// start starts a child with the files, which stay ours.
func start(c *exec.Cmd, fds ...int) error {
	for _, fd := range fds {
		f, err := duplicate(fd)
		if err != nil {
			return err
		}
		defer f.Close()
		c.ExtraFiles = append(c.ExtraFiles, f)
	}
	return c.Start()
}

// peers runs the mixes over faster-fifo, which prepare.sh has put into a folder.
type peers struct{ dir, script, python string }

func findPeers() (peers, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return peers{}, fmt.Errorf("the module's folder: %w", err)
	}
	root := strings.TrimSpace(string(out))
	p := peers{
		filepath.Join(root, ".cache/peers/faster-fifo"), filepath.Join(root, "bench/ring/driver/fasterfifo.py"),
		filepath.Join(root, ".venv/bin/python"),
	}
	if _, err := os.Stat(filepath.Join(p.dir, "driver")); err != nil {
		return peers{}, fmt.Errorf("run bench/ring/driver/prepare.sh first: %w", err)
	}
	return p, nil
}

func (m mix) args() []string {
	args := make([]string, 0, 5)
	for _, n := range []int{m.producers, m.consumers, int(m.each), m.put, m.get} {
		args = append(args, strconv.Itoa(n))
	}
	return args
}

// core runs the mix over the C++ core.
func (p peers) core(m mix) (float64, error) {
	return m.driven(exec.Command(filepath.Join(p.dir, "driver"), m.args()...))
}

// queue runs the mix over our queue.
func (p peers) queue(m mix) (float64, error) {
	return m.driven(exec.Command(filepath.Join(p.dir, "native"), m.args()...))
}

// pickled runs the mix over the Python package.
func (p peers) pickled(m mix) (float64, error) {
	c := exec.Command(p.python, append([]string{p.script}, m.args()...)...)
	c.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(p.dir, "python"), "PYTHONDONTWRITEBYTECODE=1")
	return m.driven(c)
}

func (m mix) driven(c *exec.Cmd) (float64, error) {
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return 0, fmt.Errorf("%v: %s: %w", m, filepath.Base(c.Path), err)
	}
	ns, err := strconv.ParseUint(strings.TrimSpace(string(out)), 10, 64)
	if err != nil || ns == 0 {
		return 0, fmt.Errorf("%v: %s printed %q", m, filepath.Base(c.Path), out)
	}
	return m.rate(ns), nil
}
