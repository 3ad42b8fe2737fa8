package ctest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/proxy"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// A component in C that keeps another component's block is not asked for a state: a run that continued from it would lack the block.
func TestSnapshot_IsNoneWhileBlocksAreKept(t *testing.T) {
	program := spawn.Program{Name: "probe", Path: Build(t, Plugin, "../testdata/probe.c")}
	c, err := proxy.New(context.Background(), newRuntime(t), program, "probe")
	if err != nil {
		t.Fatal(err)
	}
	s := plugintest.NewStage(t, c, plugintest.StageOptions{})
	queue := bus.Options{Mode: bus.Queue, Depth: 16, Overflow: bus.Block}
	numbers, blocks := s.To("on_number", false, queue), s.To("on_block", false, queue)
	s.From("numbers", false, queue)
	s.Saved()
	a := s.Arena(1, 64, nil)
	loan, err := a.Loan()
	if err != nil {
		t.Fatal(err)
	}
	h, err := loan.Commit()
	if err == nil {
		err = blocks.Emit(hostabi.Message{Handle: h, Kind: plugintest.BlockHold})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Done(h)
	s.Next("numbers") // it has seen the block
	tell := func(operation uint16) {
		if err := numbers.Emit(hostabi.Message{Kind: operation}); err != nil {
			t.Fatal(err)
		}
		s.Next("numbers")
	}
	s.OnLoop(func() { _, err = c.Snapshot() })
	if !errors.Is(err, component.ErrNoSnapshot) || !strings.Contains(err.Error(), "it keeps blocks (1), which are no part of a state") {
		t.Errorf("%v, want ErrNoSnapshot", err)
	}
	tell(plugintest.OpRelease)
	s.Saved()
}
