// Command native measures what the sandbox costs a guest in C or C++: the processor time of an env step in the module, under the host that
// trains use, and in a native program of the same source. Both play random actions in 64 environments, in turns, so that a busy machine
// slows both.
//
//	go run ./bench/native                                          LunarLander
//	go run ./bench/native cartpole-cpp/cartpole.wasm pendulum-c/pendulum.wasm
//	go run ./bench/native -module MODULE.wasm                      another build of the same source
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/plugins/wasm"
)

const (
	envs  = 64
	seed  = 1
	short = 200 // steps of all environments; the difference to the long run has no start-up in it
)

// measure is what the flags say.
type measure struct {
	steps, rounds int
	module        string
	compilers     []string
}

func main() {
	m := measure{}
	flag.IntVar(&m.steps, "steps", 2000, "steps of all environments in a round")
	flag.IntVar(&m.rounds, "rounds", 7, "rounds")
	flag.StringVar(&m.module, "module", "", "module to measure in the place of the committed one")
	native := flag.String("native", "clang++-19 -O2", "compiler and its flags; for guests in C without the ++")
	flag.Parse()
	m.compilers = strings.Fields(*native)
	guests := flag.Args()
	if len(guests) == 0 {
		guests = []string{"lunarlander-cpp/lunarlander.wasm"}
	}
	for _, guest := range guests {
		if err := m.report(guest); err != nil {
			fmt.Fprintln(os.Stderr, "native:", err)
			os.Exit(1)
		}
	}
}

// report measures one guest of the table and prints a line.
func (m *measure) report(name string) error {
	all := plugins.Guests()
	at := slices.IndexFunc(all, func(g plugins.Guest) bool { return g.Module == name })
	if at < 0 {
		return fmt.Errorf("%s is no module of examples/plugins/guests.go", name)
	}
	g := all[at]
	dir, err := os.MkdirTemp("", "native")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "program")
	if err := m.compile(g, program); err != nil {
		return err
	}
	module := m.module
	if module == "" {
		if module, err = g.Path(); err != nil {
			return err
		}
	}
	guest, err := open(module)
	if err != nil {
		return err
	}
	var natives, guests, ratios []float64
	for range m.rounds {
		n, err := m.native(program)
		if err != nil {
			return errors.Join(err, guest.close())
		}
		w, err := guest.play(m.steps)
		if err != nil {
			return errors.Join(err, guest.close())
		}
		natives, guests, ratios = append(natives, n), append(guests, w), append(ratios, n/w)
	}
	fmt.Printf("%s: native %.2f µs a step (%s), module %.2f µs, speed of the module %.2f of native (%.2f to %.2f, %d rounds)\n", name,
		median(natives), strings.Join(m.compilers, " "), median(guests), median(ratios), slices.Min(ratios), slices.Max(ratios), m.rounds)
	return guest.close()
}

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return of[len(of)/2]
}

// compile makes a program of this machine out of a guest's source.
func (m *measure) compile(g plugins.Guest, program string) error {
	line, err := g.Native(program)
	if err != nil {
		return err
	}
	compiler := slices.Clone(m.compilers)
	if g.Language.Name == "C" {
		compiler[0] = strings.Replace(compiler[0], "++", "", 1)
	}
	cmd := exec.Command(compiler[0], append(compiler[1:], line...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// native returns the microseconds of a step in the program.
func (m *measure) native(program string) (float64, error) {
	long, err := run(program, short+m.steps)
	if err != nil {
		return 0, err
	}
	start, err := run(program, short)
	return micros(long-start, m.steps), err
}

// run returns the processor time of a program that plays.
func run(program string, steps int) (time.Duration, error) {
	cmd := exec.Command(program, "envs="+strconv.Itoa(envs), "steps="+strconv.Itoa(steps))
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

func micros(d time.Duration, steps int) float64 {
	return float64(d.Nanoseconds()) / 1e3 / float64(steps) / envs
}

// guest is a module with environments that are played.
type guest struct {
	runtime *wasm.Runtime
	plugin  env.Plugin
	driver  *env.Driver
	words   [envs]uint64 // of random actions
	steps   uint64       // made
}

func open(module string) (g *guest, err error) {
	code, err := os.ReadFile(module)
	if err != nil {
		return nil, err
	}
	g = &guest{}
	if g.runtime, err = wasm.New(wasm.Options{}); err != nil {
		return nil, err
	}
	if g.plugin, err = g.runtime.Load(context.Background(), module, code, env.Source{Name: "measured"}); err != nil {
		return nil, errors.Join(err, g.runtime.Close())
	}
	g.driver, err = env.NewDriver(g.plugin, env.DriverOptions{Options: env.Options{Name: "measured", Envs: envs}})
	if err != nil {
		return nil, errors.Join(err, g.plugin.Close(), g.runtime.Close())
	}
	if err := g.driver.Reset(nil, make([]uint64, envs)); err != nil {
		return nil, errors.Join(err, g.close())
	}
	_, err = g.play(short)
	return g, err
}

func (g *guest) close() error {
	return errors.Join(g.driver.Close(), g.plugin.Close(), g.runtime.Close())
}

// play returns the microseconds of a step, in the time of the thread that it runs on.
func (g *guest) play(steps int) (float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := threadTime()
	if err != nil {
		return 0, err
	}
	for range steps {
		tr, row := g.driver.Acting()
		env.ActionWords(g.words[:], seed, g.steps, 0)
		tr.DrawActionsFrom(row, g.words[:])
		g.steps++
		if _, err := g.driver.Step(); err != nil {
			return 0, err
		}
	}
	after, err := threadTime()
	return micros(after-before, steps), err
}

func threadTime() (time.Duration, error) {
	var u syscall.Rusage
	const thisThread = 1 // RUSAGE_THREAD
	err := syscall.Getrusage(thisThread, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}
