package worker

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/table"
)

// weighEvery is how often the memory of a process is looked at. The kernel tells nobody how large a process grows.
const weighEvery = time.Second

// memoryGauge is the memory of all processes of environments of a component.
const memoryGauge = "rollout/process_bytes"

// weigh begins to look at the memory that is the process's own, until the process has ended or leaves its batch. A process of a native program
// that has more than the source's limit is killed. A module in a process is held to that limit by the process itself.
func (w *worker) weigh(stats *stat.Registry) {
	var ctx context.Context
	ctx, w.unweigh = context.WithCancel(context.Background())
	var gauge *stat.Gauge
	if stats != nil {
		gauge = stats.Gauge(memoryGauge)
	}
	w.weighing.Go(func() { w.weighUntil(ctx, gauge) })
}

func (w *worker) weighUntil(ctx context.Context, gauge *stat.Gauge) {
	limit := w.source.Memory
	if w.source.Runtime == env.InProcess {
		limit = 0
	}
	tick := time.NewTicker(weighEvery)
	defer tick.Stop()
	noted := uint64(0)
	note := func(now uint64) {
		if gauge != nil {
			gauge.Add(float64(now) - float64(noted))
		}
		noted = now
	}
	defer func() { note(0) }()
	for {
		now, ok := ownMemory(w.p.PID())
		if ok {
			note(now)
		}
		if limit > 0 && now > limit {
			w.fail(fmt.Errorf("it had %d MiB of memory, and `limits.memory` allows %s", now>>20, table.FormatBytes(int64(limit))))
			return
		}
		select {
		case <-w.p.Died():
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// ownMemory returns how many bytes of memory a process has that it does not share. ok is false where that cannot be told.
func ownMemory(pid int) (n uint64, ok bool) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(status) {
		fields := bytes.Fields(line)
		if len(fields) == 3 && string(fields[0]) == "RssAnon:" {
			kib, err := strconv.ParseUint(string(fields[1]), 10, 64)
			return kib << 10, err == nil
		}
	}
	return 0, false
}
