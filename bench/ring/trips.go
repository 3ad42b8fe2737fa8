package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/ring"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// roundTrips prints how long a message and its answer take: with ends that sleep, ends that spin, and with a pause
// before each, so that both processors may have gone to sleep.
func roundTrips(o options, p peers) error {
	for _, c := range []struct {
		name string
		gap  time.Duration
		spin bool
	}{{"parked", 0, false}, {"spinning", 0, true}, {"after 1 ms", time.Millisecond, true}} {
		var ours, theirs [][2]float64
		for range o.rounds {
			mine, err := trips(o.trips, c.gap, c.spin)
			if err != nil {
				return err
			}
			other, err := p.trips(o.trips, c.gap)
			if err != nil {
				return err
			}
			ours, theirs = append(ours, mine), append(theirs, other)
		}
		fmt.Printf("round trip %-11s messages p50 %.2f µs (best %.2f) p99 %.1f µs; C++ core p50 %.2f µs p99 %.1f µs\n", c.name,
			median(column(ours, 0)), slices.Min(column(ours, 0)), median(column(ours, 1)),
			median(column(theirs, 0)), median(column(theirs, 1)))
	}
	return nil
}

func column(rows [][2]float64, i int) []float64 {
	values := make([]float64, len(rows))
	for j := range rows {
		values[j] = rows[j][i]
	}
	return values
}

// trips returns p50 and p99 in microseconds of round trips through two rings of messages.
func trips(rounds int, gap time.Duration, spin bool) ([2]float64, error) {
	var rings [2]*ring.SPSC
	for i := range rings {
		r, err := ring.New("bench", 64)
		if err != nil {
			return [2]float64{}, err
		}
		defer r.Close()
		r.SetSpin(spin)
		rings[i] = r
	}
	seg, err := shm.Create("board", boardBytes)
	if err != nil {
		return [2]float64{}, err
	}
	defer seg.Close()
	c := command(task{role: "echo", batch: map[bool]int{true: 1}[spin]})
	if err := start(c, seg.FD(), rings[0].FD(), rings[1].FD()); err != nil {
		return [2]float64{}, err
	}
	times := make([]uint64, rounds)
	var one [1]hostabi.Message
	for i := range rounds + 1 {
		time.Sleep(gap)
		from := now()
		rings[0].Put(one[:])
		for rings[1].Get(one[:]) == 0 {
			rings[1].Wait(-1)
		}
		if i > 0 { // before the first, the child was not there yet
			times[i-1] = now() - from
		}
	}
	rings[0].Shut()
	slices.Sort(times)
	return [2]float64{float64(times[rounds/2]) / 1e3, float64(times[rounds*99/100]) / 1e3}, c.Wait()
}

// trips returns the same for faster-fifo's C++ core.
func (p peers) trips(rounds int, gap time.Duration) ([2]float64, error) {
	out, err := exec.Command(filepath.Join(p.dir, "driver"), "rtt", strconv.Itoa(rounds),
		strconv.Itoa(int(gap/time.Microsecond))).Output()
	var times [2]float64
	if err == nil {
		_, err = fmt.Sscan(strings.TrimSpace(string(out)), &times[0], &times[1])
	}
	return [2]float64{times[0] / 1e3, times[1] / 1e3}, err
}
