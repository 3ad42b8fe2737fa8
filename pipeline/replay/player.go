package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/tape"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Errors.
var (
	// ErrGone is wrapped by errors about episodes of which too little is kept.
	ErrGone = errors.New("it is not kept")
	// ErrDiffers is wrapped by errors about environments that do not repeat themselves.
	ErrDiffers = errors.New("the environment does not repeat itself")
	// errEnd is the end of a track.
	errEnd = errors.New("the recording ends")
)

// player plays one track.
type player struct {
	reel   *tape.Reel
	track  *tape.Track
	plugin env.Plugin
	driver *env.Driver

	next int    // record
	at   uint64 // position
	rows []byte // actions of the record under way that are not taken yet

	strict  bool               // a wrapper's fault is one of its environments, as in a trial
	agents  *trajectory.Agents // if strict
	begun   []uint64           // if strict: where the newest episode of each environment began
	lasting []byte             // that each reset goes back to; nil: none does
}

// newPlayer makes the environments of a track. The caller closes the player, and the plugin after that.
func newPlayer(reel *tape.Reel, t *tape.Track, plugin env.Plugin, strict bool) (*player, error) {
	p := &player{reel: reel, track: t, plugin: plugin, strict: strict}
	return p, p.make()
}

func (p *player) make() (err error) {
	t := p.track
	p.driver, err = env.NewDriver(p.plugin, env.DriverOptions{SoA: t.SoA, Options: env.Options{
		Name: "replay of " + t.Name, Envs: t.Envs, FirstEnv: t.First, Autoreset: t.Autoreset, Seed: t.Seed,
		Tolerate: func(error) bool { return !p.strict },
	}})
	if err != nil {
		return err
	}
	if p.strict {
		p.agents, p.begun = trajectory.NewAgents(p.driver.Schema()), make([]uint64, t.Envs)
	}
	if l, ok := p.driver.Env.(env.Lasting); ok && t.Fresh {
		p.lasting = l.SaveLasting(0, nil)
	}
	return nil
}

func (p *player) close() error {
	if p.driver == nil {
		return nil
	}
	err := p.driver.Close()
	p.driver = nil
	return err
}

// starts reports whether a track can be played from a record on.
func starts(k tape.Kind) bool { return k == tape.Key || k == tape.Renewed }

// seek goes to the position before a step: from the newest start before it.
func (p *player) seek(to uint64) error {
	from := -1
	for i := range p.track.Records {
		if x := &p.track.Records[i]; starts(x.Kind) && x.At <= to {
			from = i
		}
	}
	if from < 0 && !p.track.Whole {
		return fmt.Errorf("%w: the recording of %s begins after env step %d of its batch", ErrGone, p.track.Name, to)
	}
	if err := p.begin(from); err != nil {
		return err
	}
	for p.at < to {
		if err := p.step(); err != nil {
			return fmt.Errorf("%w: env step %d of the batch: %w", ErrGone, p.at, err)
		}
	}
	return p.prepare()
}

// begin begins with a record, or with new environments if that is -1.
func (p *player) begin(record int) error {
	if err := errors.Join(p.close(), p.make()); err != nil {
		return err
	}
	p.next, p.at, p.rows = record+1, 0, nil
	if record < 0 {
		return nil
	}
	x := &p.track.Records[record]
	if p.at = x.At; x.Kind == tape.Renewed {
		return nil
	}
	content, err := p.reel.Read(x)
	if err != nil {
		return err
	}
	if len(content) < 4 || int(binary.LittleEndian.Uint32(content)) > len(content)-4 {
		return fmt.Errorf("%w: a state of %d bytes", tape.ErrFormat, len(content))
	}
	seen, snapshot := content[4:][:binary.LittleEndian.Uint32(content)], content[4+binary.LittleEndian.Uint32(content):]
	if err := errors.Join(p.driver.Env.Restore(snapshot), p.driver.Bind()); err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	if tr, row := p.driver.Acting(); !trajectory.LoadSeen(tr, row, seen) {
		return fmt.Errorf("%w: an observation of %d bytes", tape.ErrFormat, len(seen))
	}
	return nil
}

// prepare does everything up to the next step, and writes its actions.
func (p *player) prepare() error {
	each := p.driver.Schema().ActionBytes()
	for len(p.rows) == 0 {
		if p.next == len(p.track.Records) {
			return errEnd
		}
		x := &p.track.Records[p.next]
		p.next++
		if x.Kind == tape.Key {
			continue
		}
		content, err := p.reel.Read(x)
		if err != nil {
			return err
		}
		if err := p.do(x, content); err != nil {
			return err
		}
	}
	if len(p.rows)%each != 0 {
		return fmt.Errorf("%w: actions of %d bytes, of %d a step", tape.ErrFormat, len(p.rows), each)
	}
	tr, row := p.driver.Acting()
	trajectory.LoadActions(tr, row, p.rows[:each])
	return nil
}

// do repeats what a record has.
func (p *player) do(x *tape.Record, content []byte) error {
	tr, _ := p.driver.Acting()
	switch x.Kind {
	case tape.Actions:
		if x.At != p.at {
			return fmt.Errorf("%w: env steps %d to %d are missing", ErrGone, p.at, x.At)
		}
		p.rows = content
	case tape.Params:
		if len(content) != p.driver.Schema().ParamBytes() {
			return fmt.Errorf("%w: reset parameters of %d bytes", tape.ErrFormat, len(content))
		}
		trajectory.Params{Trajectory: tr}.Load(content)
	case tape.Resets:
		return p.reset(content)
	case tape.Renewed:
		return p.begin(p.next - 1)
	case tape.Lost:
		return fmt.Errorf("%w: environments were lost there, by a fault or the end of their process", ErrGone)
	default:
		return fmt.Errorf("%w: a record of kind %q", tape.ErrFormat, x.Kind)
	}
	return nil
}

func (p *player) reset(content []byte) error {
	n := p.track.Envs
	if len(content) != n && len(content) != 9*n {
		return fmt.Errorf("%w: a reset of %d bytes", tape.ErrFormat, len(content))
	}
	mask := content[:n]
	var seeds []uint64
	for seed := range slices.Chunk(content[n:], 8) {
		seeds = append(seeds, binary.LittleEndian.Uint64(seed))
	}
	for i, chosen := range mask {
		if chosen != 0 {
			p.begins(i)
		}
	}
	if !slices.Contains(mask, 0) {
		mask = nil
	}
	return p.driver.Reset(mask, seeds)
}

// begins notes that the next episode of an environment begins.
func (p *player) begins(i int) {
	if p.strict {
		p.begun[i] = p.at
	}
	if p.lasting != nil {
		p.driver.Env.(env.Lasting).LoadLasting(i, p.lasting)
	}
}

// step makes a step.
func (p *player) step() error {
	if err := p.prepare(); err != nil {
		return err
	}
	if _, err := p.driver.Step(); err != nil {
		return err
	}
	p.rows = p.rows[p.driver.Schema().ActionBytes():]
	p.at++
	if !p.strict {
		return nil
	}
	p.agents.Step(p.driver.Stepped())
	for i, ended := range p.agents.EnvEnded {
		if ended != 0 {
			p.begun[i] = p.at
		}
	}
	if i, err := p.agents.Idle(); err != nil {
		return &env.OutputError{Env: i, Call: hostabi.ExportStep, Err: err}
	}
	return nil
}

// place is a position that a player can go back to.
type place struct {
	of                   *player
	next                 int
	at                   uint64
	rows, seen, snapshot []byte
}

// mark returns the present place; nil if the environments give no state, or depend on reset parameters, which a block keeps.
func (p *player) mark() *place {
	if p.driver.Schema().ParamBytes() > 0 {
		return nil
	}
	snapshot, err := p.driver.Env.Snapshot()
	if err != nil {
		return nil
	}
	tr, row := p.driver.Acting()
	return &place{p, p.next, p.at, p.rows, trajectory.AppendSeen(nil, tr, row), snapshot}
}

// back goes back to a place.
func (p *player) back(to *place) error {
	if err := errors.Join(p.driver.Env.Restore(to.snapshot), p.driver.Bind()); err != nil {
		return err
	}
	p.next, p.at, p.rows = to.next, to.at, to.rows
	tr, row := p.driver.Acting()
	trajectory.LoadSeen(tr, row, to.seen)
	return p.prepare()
}
