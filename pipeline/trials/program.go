package trials

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/rlhost/rlhost/pipeline/search"
	"github.com/rlhost/rlhost/pipeline/seeds"
)

// program is a program that is asked for points and about rungs: lines of JSON on its standard input and output.
type program struct {
	config  *search.Config
	cmd     *exec.Cmd
	in      io.WriteCloser
	lines   *bufio.Reader
	out     io.ReadCloser
	errs    *seeds.Tail
	patient time.Duration // for an answer

	begun  map[int]int  // rungs of a trial that it knows of
	closed map[int]bool // trials whose end it has been told
}

// Bounds on what a program may say.
const (
	maxAnswer = 1 << 20
	patience  = 2 * time.Minute
)

// beginning is the first line.
type beginning struct {
	Space    map[string]search.Dim `json:"space"`
	Goal     string                `json:"goal"`
	Seed     uint64                `json:"seed"`
	Trials   int                   `json:"trials"`
	EnvSteps uint64                `json:"env_steps"`
}

// message is one line to the program.
type message struct {
	Begin    *beginning   `json:"begin,omitempty"`
	Ask      *int         `json:"ask,omitempty"`
	Begun    *int         `json:"begun,omitempty"`
	Passed   *int         `json:"passed,omitempty"`
	Report   *int         `json:"report,omitempty"`
	Tell     *int         `json:"tell,omitempty"`
	Set      search.Point `json:"set,omitempty"`
	EnvSteps uint64       `json:"env_steps,omitempty"`
	Value    *float64     `json:"value,omitempty"`
	Pruned   bool         `json:"pruned,omitempty"`
	Error    string       `json:"error,omitempty"`
}

// startProgram starts the program of a configuration, which ends with ctx. There is none where the configuration has none.
func startProgram(ctx context.Context, c *search.Config, trials int) (*program, error) {
	if len(c.Program) == 0 {
		return nil, nil
	}
	p := &program{config: c, cmd: exec.CommandContext(ctx, c.Program[0], c.Program[1:]...), errs: &seeds.Tail{}, patient: patience,
		begun: map[int]int{}, closed: map[int]bool{}}
	p.cmd.Stderr = io.MultiWriter(p.errs, os.Stderr)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this process; the program ends when its input does
	p.cmd.WaitDelay = time.Second
	var err error
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		p.out, err = p.cmd.StdoutPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("the program of [sweep] cannot be started: %w", err)
	}
	p.lines = bufio.NewReader(io.LimitReader(p.out, 1<<40))
	return p, p.send(message{Begin: &beginning{c.Space, c.Goal, c.Seed, trials, c.EnvSteps}})
}

// sampler is the program where there is one.
func (p *program) sampler() search.Sampler {
	if p == nil {
		return nil
	}
	return p
}

// close ends the program.
func (p *program) close() {
	if p == nil {
		return
	}
	_ = p.in.Close()
	ended := time.AfterFunc(time.Second, func() { _ = p.cmd.Process.Kill() })
	_, _ = io.Copy(io.Discard, p.out)
	_ = p.cmd.Wait()
	ended.Stop()
}

func (p *program) send(m message) error {
	line, err := json.Marshal(m)
	if err == nil {
		_, err = p.in.Write(append(line, '\n'))
	}
	return p.explained(err)
}

// explained names the program in an error, with what it said last.
func (p *program) explained(err error) error {
	if err == nil {
		return nil
	}
	said := strings.TrimSpace(p.errs.String())
	if i := strings.LastIndexByte(said, '\n'); i >= 0 {
		said = said[i+1:]
	}
	if said != "" {
		said = ", and said: " + said
	}
	return fmt.Errorf("the program of [sweep] (%s): %w%s", strings.Join(p.config.Program, " "), err, said)
}

// deadlines is a reader that can stop waiting.
type deadlines interface {
	SetReadDeadline(t time.Time) error
}

// answer reads one line into a struct, strictly.
func (p *program) answer(question string, into any) error {
	if d, ok := p.out.(deadlines); ok { // a pipe has them
		_ = d.SetReadDeadline(time.Now().Add(p.patient))
	}
	var line []byte
	for {
		part, err := p.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
		case errors.Is(err, bufio.ErrBufferFull) && len(line) < maxAnswer:
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			return p.explained(fmt.Errorf("answered %s with more than %d bytes", question, maxAnswer))
		case errors.Is(err, os.ErrDeadlineExceeded):
			return p.explained(fmt.Errorf("gave no answer to %s in %v", question, p.patient))
		default:
			return p.explained(fmt.Errorf("ended before it answered %s", question))
		}
		break
	}
	d := json.NewDecoder(strings.NewReader(string(line)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return p.explained(fmt.Errorf("answered %s with %.200q: %w", question, strings.TrimSpace(string(line)), err))
	}
	return nil
}

// Ask implements search.Sampler.
func (p *program) Ask(h *search.History, trial, _ int) (search.Point, error) {
	if err := p.inform(h); err != nil {
		return nil, err
	}
	if err := p.send(message{Ask: &trial}); err != nil {
		return nil, err
	}
	var a struct {
		Set search.Point `json:"set"`
	}
	if err := p.answer(fmt.Sprintf(`{"ask": %d}`, trial), &a); err != nil {
		return nil, err
	}
	if err := p.config.Check(a.Set); err != nil {
		return nil, p.explained(fmt.Errorf("answered {\"ask\": %d} with a point outside of the space: %w", trial, err))
	}
	p.begun[trial] = 0
	return a.Set, nil
}

// report asks whether a trial ends at its newest rung.
func (p *program) report(h *search.History, t *search.Trial) (prune bool, err error) {
	if err := p.inform(h); err != nil {
		return false, err
	}
	value, _ := t.Last().Value()
	if err := p.send(message{Report: &t.Number, EnvSteps: t.Last().Until, Value: &value}); err != nil {
		return false, err
	}
	p.begun[t.Number] = t.Last().Rung + 1
	var a struct {
		Prune *bool `json:"prune"`
	}
	question := fmt.Sprintf(`{"report": %d}`, t.Number)
	if err := p.answer(question, &a); err != nil {
		return false, err
	}
	if a.Prune == nil {
		return false, p.explained(fmt.Errorf("answered %s without prune", question))
	}
	return *a.Prune, nil
}

// inform tells of the trials that the program does not know, of rungs that it let pass before a resume, and of ends.
func (p *program) inform(h *search.History) error {
	for i := range h.Trials {
		t := &h.Trials[i]
		if p.closed[t.Number] {
			continue
		}
		if err := p.follow(t); err != nil {
			return err
		}
	}
	return nil
}

// follow tells what the program does not know of one trial.
func (p *program) follow(t *search.Trial) error {
	rung, known := p.begun[t.Number]
	if !known {
		if err := p.send(message{Begun: &t.Number, Set: t.Set}); err != nil {
			return err
		}
	}
	for ; rung < t.Judged; rung++ {
		value, _ := t.Rungs[rung].Value()
		if err := p.send(message{Passed: &t.Number, EnvSteps: t.Rungs[rung].Until, Value: &value}); err != nil {
			return err
		}
	}
	p.begun[t.Number] = rung
	last := t.Last()
	if last == nil {
		return nil
	}
	m := message{Tell: &t.Number, Error: t.Error(), Pruned: t.Pruned}
	if value, ok := last.Value(); ok && m.Error == "" {
		m.Value = &value
	}
	if m.Error == "" && !t.Pruned && last.Rung != len(p.config.Stops())-1 {
		return nil
	}
	p.closed[t.Number] = true
	return p.send(m)
}
