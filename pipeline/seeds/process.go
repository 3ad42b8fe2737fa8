package seeds

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rlhost/rlhost/core/component"
)

// Process runs trainings as processes of their own.
type Process struct {
	Program string // rlhost
	Threads int    // processors that each may use: GOMAXPROCS; 0 = all
}

// Progress is a training's report while it runs.
type Progress struct {
	EnvSteps    uint64   `json:"env_steps"`
	PerSecond   float64  `json:"env_steps_per_s_10"`
	MeanReturn  *float64 `json:"train_return"` // over the window of training episodes
	WallSeconds float64  `json:"wall_seconds"`
}

// maxLine bounds a line that a training prints, and maxComplaint the part of its errors that is kept.
const (
	maxLine      = 1 << 20
	maxComplaint = 16 << 10
)

// Train runs one training with the arguments of the program, which make it print JSON, and returns its last line. progress gets each of its
// reports. Where ctx is done the training is interrupted, which saves it. The error says why the training has no result.
func (p *Process) Train(ctx context.Context, args []string, progress func(Progress)) (End, error) {
	runtime.LockOSThread() // whose end would kill the training: see Pdeathsig
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, p.Program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it saves its state
	cmd.WaitDelay = time.Minute
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   true,            // Ctrl-C is for this process, which asks the trainings to end
		Pdeathsig: syscall.SIGKILL, // so that nothing holds their runs when the set continues
	}
	if p.Threads > 0 {
		cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(p.Threads))
	}
	complaints := &Tail{}
	cmd.Stderr = complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		return End{}, err
	}
	if err := cmd.Start(); err != nil {
		return End{}, err
	}
	last := follow(out, progress)
	err = cmd.Wait()
	switch {
	case err != nil:
		return last, errors.New(firstOf(last.Error, complaints.String(), err.Error()))
	case last.Event != "end":
		return last, errors.New("the training said nothing of its end")
	case last.Reason == string(component.StopInterrupted): // by rlhost stop, which is no failure of the training
		return last, errors.New("it was stopped before its end")
	}
	return last, nil
}

// End is the last line of a training.
type End struct {
	Event       string   `json:"event"`
	Reason      string   `json:"reason"`
	Error       string   `json:"error"`
	EnvSteps    uint64   `json:"env_steps"`
	WallSeconds float64  `json:"wall_seconds"`
	Return      *float64 `json:"eval_return"`
	Judged      string   `json:"eval_judged"`
	Greedy      *played  `json:"eval_greedy"`
	Sampled     *played  `json:"eval_sampled"`
	ParamsHash  string   `json:"params_hash"`
	Run         string   `json:"run"`
}

type played struct {
	Return float64 `json:"mean_return"`
}

func (p *played) mean() *float64 {
	if p == nil {
		return nil
	}
	return &p.Return
}

func firstOf(texts ...string) string {
	for _, s := range texts {
		if s = strings.TrimSpace(s); s != "" {
			return s
		}
	}
	return ""
}

// follow reads the lines of a training until they end, and returns the last one.
func follow(out io.Reader, progress func(Progress)) (last End) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e End
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		var p Progress
		if e.Event == "progress" && json.Unmarshal(lines.Bytes(), &p) == nil {
			progress(p)
			continue
		}
		if e.Event == "end" || e.Event == "start" {
			last = e
		}
	}
	_, _ = io.Copy(io.Discard, out) // after a line that is too long
	return last
}

// Tail keeps the end of its input: what a process complained of last.
type Tail struct{ b bytes.Buffer }

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.b.Write(p)
	if over := t.b.Len() - maxComplaint; over > 0 {
		t.b.Next(over)
	}
	return len(p), nil
}

// String returns the kept end.
func (t *Tail) String() string { return t.b.String() }
