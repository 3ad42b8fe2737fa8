package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rlhost/rlhost/core/control"
)

// job is a run of the program, and a connection to it.
type job struct {
	cmd    *exec.Cmd
	client *control.Client
	dir    string // where its runs lie
	out    bytes.Buffer
	ended  chan error
}

// setup describes a job.
type setup struct {
	guest string // module
	mode  string // async or sync
	steps uint64 // env steps; 0 means until it is stopped
	deaf  bool   // it has no control socket
	wrap  string // list of wrappers around the environments; empty: there are none
	// shaper is the module of a component that shapes the rewards of each block; empty: there is none.
	shaper string
}

const shaperText = `shaped_rewards = true

[component.shaper]
runtime = "wasm"
use = %q
grants = ["metric"]

[[wire]]
signal = "rollout.rewards"
slot = "shaper.on_rewards"
mode = "queue"
depth = 64
on_full = "block"
write = ["shaped_reward"]

[[wire]]
signal = "shaper.shaped"
slot = "rollout.on_shaped"
mode = "reply"
depth = 64
on_full = "block"
`

const pipelineText = `rlhost = 1

[run]
name = "swap"
seed = 1
dir = %q
stop = { env_steps = %d }

[env.cartpole]
use = %q
wrap = [%s]

[train]
preset = "fast"
env = "cartpole"
mode = %q

[component.rollout]
envs = 64
horizon = 32
splits = 1
`

// start starts a job and waits until it answers.
func start(ctx context.Context, o options, s setup) (*job, error) {
	dir, err := os.MkdirTemp("", "rlhost-swap-")
	if err != nil {
		return nil, err
	}
	guest, err := filepath.Abs(s.guest)
	if err != nil {
		return nil, err
	}
	if s.steps == 0 {
		s.steps = 1 << 50
	}
	if s.mode == "" {
		s.mode = "async"
	}
	text := fmt.Appendf(nil, pipelineText, filepath.Join(dir, "runs"), s.steps, guest, s.wrap, s.mode)
	if s.shaper != "" {
		text = fmt.Appendf(text, shaperText, s.shaper)
	}
	file := filepath.Join(dir, "pipeline.toml")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return nil, err
	}
	j := &job{dir: dir, ended: make(chan error, 1)}
	j.cmd = exec.CommandContext(ctx, o.program, "train", file, "--json")
	if s.deaf {
		if err := j.deafen(); err != nil {
			return nil, err
		}
	}
	j.cmd.Stdout, j.cmd.Stderr = &j.out, &j.out
	j.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := j.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { j.ended <- j.cmd.Wait() }()
	if s.deaf {
		return j, nil
	}
	j.client, err = j.dial(ctx)
	return j, err
}

// deafen puts a file in the place of the folder for sockets: a run that cannot listen continues without.
func (j *job) deafen() error {
	j.cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+j.dir)
	return os.WriteFile(filepath.Join(j.dir, "rlhost"), nil, 0o600)
}

// dial connects to the job's socket as soon as there is one.
func (j *job) dial(ctx context.Context) (*control.Client, error) {
	path := control.SocketPath(filepath.Join(j.dir, "runs", "swap", "0001"))
	for {
		client, err := control.Dial(ctx, path)
		if err == nil {
			return client, nil
		}
		select {
		case end := <-j.ended:
			return nil, fmt.Errorf("the run ended before it answered: %v\n%s", end, j.out.Bytes())
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (j *job) status(ctx context.Context) (s control.StatusReply, err error) {
	err = j.client.Do(ctx, control.VerbStatus, control.StatusRequest{}, &s, nil)
	return s, err
}

// swap replaces the environments at a boundary, without a trial.
func (j *job) swap(ctx context.Context, file, at string, keep bool) (r control.SwapReply, err error) {
	none, probation := 0, 0.0
	path := file
	if filepath.Ext(file) == ".wasm" {
		if path, err = filepath.Abs(file); err != nil {
			return r, err
		}
	}
	err = j.client.Do(ctx, control.VerbSwap, control.SwapRequest{
		Component: "rollout", File: path, At: at, KeepState: &keep, TrialEnvs: &none, Probation: &probation,
	}, &r, nil)
	var e *control.Error
	if errors.As(err, &e) {
		err = fmt.Errorf("%s: %w %s", e.Code, err, e.Help)
	}
	return r, err
}

// throughProcess moves inference to a separate process and back.
func (j *job) throughProcess(ctx context.Context) error {
	none := 0.0
	for _, runtime := range []string{"process", "builtin"} {
		err := j.client.Do(ctx, control.VerbSwap, control.SwapRequest{Component: "inference", File: runtime, Probation: &none}, nil, nil)
		if err != nil {
			return fmt.Errorf("inference to %s: %w", runtime, err)
		}
	}
	return nil
}

// stop ends the job and removes its files.
func (j *job) stop(ctx context.Context) error {
	err := j.client.Do(ctx, control.VerbStop, control.StopRequest{Now: true}, nil, nil)
	if err == nil {
		<-j.ended
	} else {
		_ = j.cmd.Process.Kill()
	}
	return errors.Join(err, j.client.Close(), os.RemoveAll(j.dir))
}

// end waits for the job's own end and returns its last line.
func (j *job) end() (last map[string]any, err error) {
	if err := <-j.ended; err != nil {
		return nil, fmt.Errorf("%w\n%s", err, j.out.Bytes())
	}
	lines := bytes.Split(bytes.TrimSpace(j.out.Bytes()), []byte("\n"))
	err = json.Unmarshal(lines[len(lines)-1], &last)
	if j.client != nil {
		_ = j.client.Close() // the job has closed it
	}
	return last, errors.Join(err, os.RemoveAll(j.dir))
}
