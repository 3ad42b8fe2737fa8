package ipc

import (
	"os/exec"
	"testing"
)

func TestWhenEnds_TellsTheEndOfAProcess(t *testing.T) {
	c := exec.Command("cat")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	if err := WhenEnds(c.Process.Pid, func() { close(ended) }); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
		t.Fatal("it has not ended")
	default:
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	<-ended
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	again := make(chan struct{})
	if err := WhenEnds(c.Process.Pid, func() { close(again) }); err != nil {
		t.Fatal(err)
	}
	<-again
}

func TestWhenEnds_RefusesWhatIsNoProcess(t *testing.T) {
	if err := WhenEnds(-1, func() {}); err == nil {
		t.Error("process -1 is waited for")
	}
}
