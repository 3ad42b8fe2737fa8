package vector

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// lone is a caller whose environments are stepped alone.
type lone struct {
	*caller
	envs  int
	place uint32
}

func beginAlone(t *testing.T, envs int, script plugintest.Script) *lone {
	t.Helper()
	o := Options{Envs: envs, Autoreset: hostabi.SameStep, Alone: true}
	c := &lone{caller: beginWith(t, o, script, areaBytes(o)), envs: envs}
	var ready Ready
	files := c.document(&ready)
	if len(files) != 1 || ready.Row != 1 {
		t.Fatalf("%d files, %+v", len(files), ready)
	}
	fd, err := shm.Dup(int(files[0].Fd())) // the segment closes its own
	if err != nil {
		t.Fatal(err)
	}
	block, err := shm.Open(fd, shm.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	clear(block.Bytes()[ready.Offset:][:ready.Bytes]) // actions of 0
	if err := errors.Join(block.Close(), files[0].Close()); err != nil {
		t.Error(err)
	}
	return c
}

// send begins steps.
func (c *lone) send(envs ...uint32) {
	c.t.Helper()
	list := c.resets.Bytes()[listsAt(c.envs):]
	for k, index := range envs {
		binary.LittleEndian.PutUint32(list[4*((int(c.place)+k)%c.envs):], index)
	}
	if c.requests.Put([]hostabi.Message{{Slot: hostabi.LinkEnvStep, T: c.place, Split: uint32(len(envs))}}) != 1 {
		c.t.Fatal("no room for a request")
	}
	c.place = (c.place + uint32(len(envs))) % uint32(c.envs)
}

// receive returns the environments of an answer.
func (c *lone) receive(count uint32) (envs []uint32) {
	c.t.Helper()
	m := c.ask(hostabi.Message{Slot: Receive, Split: count})
	if m.Kind != 0 {
		c.t.Fatalf("receive: %+v", m)
	}
	for k := range int(m.Split) {
		envs = append(envs, binary.LittleEndian.Uint32(c.resets.Bytes()[listsAt(c.envs)+4*c.envs+4*k:]))
	}
	return envs
}

// fails returns the document of a call that fails.
func (c *lone) fails(m hostabi.Message) (f Failed) {
	c.t.Helper()
	if m := c.ask(m); m.Kind == 0 {
		c.t.Fatalf("it is answered: %+v", m)
	}
	c.document(&f)
	return f
}

func (c *lone) same(got []uint32, want ...uint32) {
	c.t.Helper()
	if len(got) != len(want) {
		c.t.Fatalf("environments %v, want %v", got, want)
	}
	for k := range got {
		if got[k] != want[k] {
			c.t.Fatalf("environments %v, want %v", got, want)
		}
	}
}

func TestAlone_EnvironmentsAreToldInTheOrderInWhichTheirStepsEnd(t *testing.T) {
	c := beginAlone(t, 5, plugintest.Script{})
	c.ask(hostabi.Message{Slot: hostabi.LinkEnvReset, Kind: Announce})
	c.same(c.receive(3), 0, 1, 2)
	c.send(2, 0)
	c.same(c.receive(3), 3, 4, 2)
	c.send(4, 3, 2)
	c.same(c.receive(4), 0, 4, 3, 2)
	for range 40 { // the list goes round
		c.send(3, 1, 4)
		c.same(c.receive(3), 3, 1, 4)
	}
	c.requests.Shut()
	if err := <-c.ended; err != nil {
		t.Error(err)
	}
}

func TestAlone_AResetForgetsStepsThatAreOver(t *testing.T) {
	c := beginAlone(t, 4, plugintest.Script{})
	c.ask(hostabi.Message{Slot: hostabi.LinkEnvReset})
	c.send(3, 2, 1, 0)
	copy(c.resets.Bytes()[8*4:], []byte{0, 1, 0, 1})
	c.ask(hostabi.Message{Slot: hostabi.LinkEnvReset, Kind: hostabi.LinkEnvMask})
	c.same(c.receive(2), 2, 0)
	c.send(1)
	c.same(c.receive(1), 1)
}

func TestAlone_AFailureNamesTheEnvironmentsThatNeedAReset(t *testing.T) {
	fails := plugintest.Script{Cue: func(a plugintest.At) plugintest.Cue {
		if a.Env == 1 && a.Calls == 2 {
			return plugintest.ErrorStatus
		}
		return plugintest.Nothing
	}}
	c := beginAlone(t, 3, fails)
	c.ask(hostabi.Message{Slot: hostabi.LinkEnvReset})
	c.send(0)
	c.send(1)
	if f := c.fails(hostabi.Message{Slot: Receive, Split: 2}); len(f.Envs) != 1 || f.Envs[0] != 1 || !strings.Contains(f.Reason, "status") {
		t.Errorf("%+v", f)
	}
	c.same(c.receive(1), 0)
	if f := c.fails(hostabi.Message{Slot: 9}); len(f.Envs) != 0 || !strings.Contains(f.Reason, "no call 0x9") {
		t.Errorf("%+v", f)
	}
}

func TestAlone_NumbersThatAreWrongAreRefused(t *testing.T) {
	c := beginAlone(t, 3, plugintest.Script{})
	c.ask(hostabi.Message{Slot: hostabi.LinkEnvReset})
	c.send(7)
	if f := c.fails(hostabi.Message{Slot: Receive, Split: 1}); !strings.Contains(f.Reason, "environment 7 of 3") {
		t.Errorf("%+v", f)
	}
	c.requests.Put([]hostabi.Message{{Slot: hostabi.LinkEnvStep, Split: 4}})
	if err := <-c.ended; err == nil || !strings.Contains(err.Error(), "steps of 4 environments of 3") {
		t.Errorf("%v", err)
	}
}
