package wasm

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/internal/bombs"
	"github.com/rlhost/rlhost/plugins/wasm/internal/wasmtest"
)

// besieged is a training run of the real program that is asked to take bombs for its environment.
type besieged struct {
	t       *testing.T
	program string
	dir     string
	env     []string
	run     *exec.Cmd
	output  testkit.Buffer
	said    error // of the newest status
}

const besiegedPipeline = `rlhost = 1
[run]
name = "besieged"
[env.cartpole]
use = "cartpole@1"
limits = { compile = "3s", compile_memory = "256MiB" }
[train]
preset = "ppo"
env = "cartpole"
`

func besiege(t *testing.T) *besieged {
	dir, err := os.MkdirTemp("", "rlhost-besieged") // a short path, for the socket in it
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	b := &besieged{t: t, program: filepath.Join(dir, "bin", "rlhost"), dir: dir,
		env: append(os.Environ(), "XDG_CACHE_HOME="+dir, "XDG_RUNTIME_DIR="+dir)}
	testkit.Build(t, "../../cmd/rlhost", b.program)
	must(t, os.WriteFile(filepath.Join(dir, "pipeline.toml"), []byte(besiegedPipeline), 0o600))
	b.run = b.command("train")
	b.run.Stdout, b.run.Stderr = &b.output, &b.output
	must(t, b.run.Start())
	t.Cleanup(func() {
		_ = b.run.Process.Kill()
		_ = b.run.Wait()
	})
	return b
}

func (b *besieged) command(args ...string) *exec.Cmd {
	cmd := exec.Command(b.program, args...)
	cmd.Dir, cmd.Env = b.dir, b.env
	return cmd
}

// steps returns the env steps that the run has made, 0 before it answers.
func (b *besieged) steps() int {
	out, err := b.command("status", "--json").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		b.said = err
		return 0
	}
	var status struct {
		Steps struct{ Made int } `json:"env_steps"`
	}
	if err := json.Unmarshal(out, &status); err != nil {
		b.t.Fatalf("%v in %s", err, out)
	}
	return status.Steps.Made
}

// String returns the words of the run and of its status.
func (b *besieged) String() string { return fmt.Sprint(b.said, "\n", &b.output) }

// goesOn waits until the run has made more steps than it had.
func (b *besieged) goesOn(before int) int {
	b.t.Helper()
	now := 0
	testkit.Until(b.t, "the run goes on", func() bool {
		now = b.steps()
		return now > before
	}, b)
	return now
}

// peak returns the most memory that the run's process has had resident, in MiB.
func (b *besieged) peak() int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.run.Process.Pid))
	if err != nil {
		b.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		b.t.Fatal(err)
	}
	return kib >> 10
}

// forget resets the measured peak.
func (b *besieged) forget() {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", b.run.Process.Pid), []byte("5"), 0); err != nil {
		b.t.Fatal(err)
	}
}

// Exit codes of rlhost swap that change nothing.
const (
	exitTrial  = 4
	exitPlugin = 5
)

// sheltered builds environments.
var sheltered bombs.Guest = func(imports, after func(m *asm.Module)) []byte {
	return wasmtest.Guest{Before: imports, After: after}.Bytes()
}

// TestHostile_RunContinuesUnderBombs asks a run to take each bomb for its environment. Each must be refused, the run must
// continue, and its memory must not grow by 200 MB. `make test-hostile` runs it with the heavy ones.
func TestHostile_RunContinuesUnderBombs(t *testing.T) {
	list := sheltered.Locals()[:1]
	if os.Getenv("RLHOST_HOSTILE") != "" {
		list = append(sheltered.Light(), sheltered.Heavy()...)
	} else if testing.Short() {
		t.Skip("builds the program")
	}
	b := besiege(t)
	made := b.goesOn(0)
	file := filepath.Join(b.dir, "bomb.wasm")
	for _, x := range list {
		module := x.Build()
		must(t, os.WriteFile(file, module, 0o600))
		b.forget()
		before, began := b.peak(), time.Now()
		out, err := b.command("swap", "rollout", file).CombinedOutput()
		took, grown := time.Since(began), b.peak()-before
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitTrial && exit.ExitCode() != exitPlugin {
			t.Errorf("%s: swap = %v\n%.500s", x.Name, err, out)
		}
		if grown >= 200 {
			t.Errorf("%s: the host's memory grew by %d MiB", x.Name, grown)
		}
		made = b.goesOn(made)
		said := strings.Split(strings.TrimSpace(string(out)), "\n")
		t.Logf("%-45s %6d KB  %5.1f s  %+4d MiB  %.160s", x.Name, len(module)>>10, took.Seconds(), grown, strings.TrimPrefix(said[min(1, len(said)-1)], "rlhost: error[E017]: "))
	}
}
