package place

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// allowed returns the processors of a thread as the kernel tells them.
func allowed(t *testing.T, thread string) string {
	t.Helper()
	status, err := os.ReadFile("/proc/" + thread + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return strings.TrimSpace(list)
		}
	}
	t.Fatal("the kernel names no processors")
	return ""
}

func TestPin_PlacesItsGoroutineAlone(t *testing.T) {
	all, err := Available()
	if err != nil {
		t.Fatal(err)
	}
	last := all[len(all)-1:]
	ended := make(chan string, 2)
	go func() {
		if err := slices.Concat(last, Cores{MaxCores - 1}).Pin(); err != nil { // the other one is not there
			t.Error(err)
		}
		ended <- allowed(t, "thread-self")
		if err := all.Unpin(); err != nil {
			t.Error(err)
		}
		ended <- allowed(t, "thread-self")
	}()
	if on, then := <-ended, <-ended; on != last.String() || then != all.String() {
		t.Errorf("it ran on %s, then on %s; want %v, then %v", on, then, last, all)
	}
	if now, err := Available(); err != nil || !slices.Equal(now, all) {
		t.Errorf("another goroutine has %v, %v; want %v", now, err, all)
	}
	if err := (Cores{MaxCores - 1}).Pin(); err == nil && len(all) < MaxCores {
		t.Error("a goroutine runs on a processor that is not there")
	}
}

// A thread stands back for good, so the one of this test ends with it.
func TestSetNice_IsForTheCallingThread(t *testing.T) {
	got := make(chan int, 1)
	go func() {
		runtime.LockOSThread()
		if err := SetNice(MaxNice); err != nil {
			t.Error(err)
		}
		raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		if err != nil {
			t.Error(err)
		}
		got <- 20 - raw
	}()
	if nice := <-got; nice != MaxNice {
		t.Errorf("nice is %d, want %d", nice, MaxNice)
	}
}

func TestLowestNice_FollowsTheRight(t *testing.T) {
	status := func(mask string) string { return "Name:\tx\nCapEff:\t" + mask + "\nThreads:\t1\n" }
	if held, err := effective(status("0000000000800000")); err != nil || held != 1<<capSysNice {
		t.Errorf("capabilities %x, %v", held, err)
	}
	for _, bad := range []string{status("xyz"), "Name:\tx\n"} {
		if _, err := effective(bad); err == nil {
			t.Errorf("%q has capabilities", bad)
		}
	}
	lowest, err := LowestNice()
	if err != nil || lowest < MinNice || lowest > MaxNice {
		t.Errorf("%d, %v", lowest, err)
	}
	if text, err := os.ReadFile("/proc/self/status"); err == nil {
		if held, _ := effective(string(text)); held&(1<<capSysNice) != 0 && lowest != MinNice {
			t.Errorf("with the right it is %d", lowest)
		}
	}
}
