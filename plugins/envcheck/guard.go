package envcheck

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
)

// Canaries where an environment must write, and where nothing may. As a float32 the first is NaN; the second is a
// number, because it may lie between numbers that are read. Neither is a flag.
var canary = [8]byte{0xa5, 0xa5, 0xff, 0x7f, 0xa5, 0xa5, 0xff, 0x7f}

const filler = 0x5a

// marginBytes is the approximate room around each tensor.
const marginBytes = 4096

// watched holds the findings of a guarded trace: the first of each kind.
type watched struct {
	unguarded bool   // the runtime cannot step into a block with room around its tensors
	unwritten string // an element that should have been written
	beyond    string // memory that should not have been written
	words     string // an error text without an error
}

// guard watches the writes to a block.
type guard struct {
	driver *env.Driver
	prober env.EnvProber // nil if the environment cannot be probed
	mode   hostabi.Autoreset
	margin int // rows on each side: so many environments' rows
	agents int // of an environment
	spec   *hostabi.EnvSpec
	found  *watched
	calls  int         // of rl_step
	resets bool        // the call in progress is a reset
	due    []dueColumn // of the call in progress
	chosen []byte      // environments of the call; nil = all
	want   []byte      // the guest's region, as it must be after the call except for due
}

// dueColumn is one row of a column that the current call must write.
type dueColumn struct {
	trajectory.Layout
	m     trajectory.Matrix // of the driver's environments
	bytes int               // where m begins in the block
}

// guardedDriver makes a driver with watched room around its tensors. If the runtime cannot step into such a block, only
// writes within the tensors are watched.
func (k *checker) guardedDriver(o env.DriverOptions, found *watched) (*env.Driver, *guard, error) {
	o.Rows = 3
	elems := k.spec.ObsElems()
	for _, d := range k.spec.All(hostabi.RoleResetParam) {
		elems += d.Elems(hostabi.MaxTensorElems)
	}
	o.Margin = max(1, min(64, marginBytes/(4*elems)))
	driver, err := env.NewDriver(k.plugin, o)
	if errors.Is(err, env.ErrUnsupported) {
		found.unguarded = true
		o.Margin = 0
		driver, err = env.NewDriver(k.plugin, o)
	}
	if err != nil {
		return nil, nil, err
	}
	g := &guard{driver: driver, mode: o.Autoreset, margin: o.Margin * k.spec.Agents(), agents: k.spec.Agents(), spec: &k.spec, found: found}
	region := g.region()
	for i := range region {
		region[i] = filler
	}
	whole, _ := driver.Whole()
	trajectory.Params{Trajectory: whole}.Clear() // the host writes these: none are set
	g.want = make([]byte, len(region))
	g.prober, _ = driver.Env.(env.EnvProber)
	if g.prober != nil {
		if _, _, err := g.prober.Probe(); err != nil {
			return nil, nil, errors.Join(err, driver.Close())
		}
	}
	return driver, g, nil
}

// region returns the part of the block that the guest can write.
func (g *guard) region() []byte {
	whole, _ := g.driver.Whole()
	return whole.Mem[:whole.Schema.GuestBytes]
}

// plantStep prepares a step. The actions have been written.
func (g *guard) plantStep() {
	g.calls++
	g.chosen, g.due, g.resets = nil, g.due[:0], false
	_, t := g.driver.Whole()
	g.add(trajectory.Outcome, t)
	g.add(trajectory.Observed|trajectory.AtBegin, t+1)
	if g.mode == hostabi.SameStep {
		g.add(trajectory.Final, 0)
	}
	copy(g.want, g.region())
}

// plantReset prepares a reset of the environments for which mask is not 0, or of all.
func (g *guard) plantReset(mask []byte) {
	g.chosen, g.due = mask, g.due[:0]
	_, t := g.driver.Whole()
	g.add(trajectory.Observed|trajectory.AtBegin, t)
	g.resets = true
	copy(g.want, g.region())
}

// add makes a row of the guest's columns with a flag due.
func (g *guard) add(flag trajectory.Flags, row int) {
	whole, _ := g.driver.Whole()
	for _, l := range whole.Schema.Columns() {
		if l.Flags&flag != 0 && l.Flags&trajectory.Guest != 0 {
			g.addColumn(whole, l, row)
		}
	}
}

// addColumn makes a row of a column due and puts canaries into it.
func (g *guard) addColumn(whole trajectory.Trajectory, l trajectory.Layout, row int) {
	d := dueColumn{Layout: l, bytes: l.Offset + row*l.StrideT + g.margin*l.StrideEnv} // StrideEnv is from row to row
	d.m = whole.Row(l.Column, row)
	d.m.Data = whole.Mem[d.bytes : l.Offset+row*l.StrideT+l.RowBytes]
	d.m.Rows -= 2 * g.margin
	g.due = append(g.due, d)
	for env := range d.m.Rows {
		if !g.isChosen(env) || g.hosts(&d, env) {
			continue
		}
		for i := range d.m.Elems {
			copy(d.element(d.m.Data, env, i), canary[:])
		}
	}
}

func (g *guard) isChosen(env int) bool { return g.chosen == nil || g.chosen[env/g.agents] != 0 }

// hosts reports whether no environment writes a row: only the host may.
func (g *guard) hosts(d *dueColumn, env int) bool {
	return !g.driver.Schema().Written(d.Column, env)
}

// element returns one element of a row that begins at the front of data.
func (d *dueColumn) element(data []byte, env, i int) []byte {
	return data[env*d.m.StrideRow+i*d.m.StrideElem:][:d.m.DType.Bytes()]
}

// look finds the wrong writes of a call. err is the call's error, or that of the check of its values, which does not
// know why an element is NaN.
func (g *guard) look(call string, err error) error {
	var fault *env.Fault
	if errors.As(err, &fault) {
		return err
	}
	where := call
	if call == hostabi.ExportStep {
		where = fmt.Sprintf("%s at step %d", call, g.calls)
	}
	for k := range g.due {
		g.lookAt(&g.due[k], where)
	}
	g.lookBeyond(where)
	if g.prober == nil || err != nil {
		return err
	}
	trespass, words, err := g.prober.Probe()
	if trespass != "" {
		first(&g.found.beyond, "%s: %s", where, trespass)
	}
	if words != "" {
		first(&g.found.words, "%s says %s and returns no error", where, words)
	}
	return err
}

// first keeps the first finding.
func first(found *string, format string, args ...any) {
	if *found == "" {
		*found = fmt.Sprintf(format, args...)
	}
}

// lookAt finds elements of one row that still are canaries, and accepts the others.
func (g *guard) lookAt(d *dueColumn, where string) {
	for env := range d.m.Rows {
		if !g.isChosen(env) || !g.driver.Schema().Holds(d.Column, env) {
			continue
		}
		unwritten, at := 0, 0
		for i := range d.m.Elems {
			now := d.element(d.m.Data, env, i)
			if bytes.Equal(now, canary[:len(now)]) {
				if unwritten++; unwritten == 1 {
					at = i
				}
			}
			copy(d.element(g.want[d.bytes:], env, i), now)
		}
		wanted := d.Flags&(trajectory.Final|trajectory.AtEnd|trajectory.AtBegin) == 0 || g.ended(env)
		if d.Flags&trajectory.AtBegin != 0 { // of several agents it is not known whether one has begun
			wanted = g.resets || wanted && g.agents == 1 && g.mode == hostabi.SameStep
		}
		if wanted && unwritten > 0 && (!d.byChance() || unwritten == d.m.Elems) {
			first(&g.found.unwritten, "%s: %s does not write element %d of %s", who(g.spec, env), where, at, name(d.Layout))
		}
	}
}

// byChance reports whether an element may be written as the canary is: a pixel, or another small number. Only a row that
// consists of canaries then counts as unwritten.
func (d *dueColumn) byChance() bool {
	return d.m.DType.Bytes() < 4 && d.m.Elems > 1 && d.Flags&(trajectory.Observed|trajectory.Final) != 0 && d.Column.Kind() != trajectory.Mask
}

// ended reports whether an environment's episode ended in the step.
func (g *guard) ended(env int) bool {
	for k := range g.due {
		if d := &g.due[k]; d.Column == trajectory.Terminated || d.Column == trajectory.Truncated {
			if d.element(d.m.Data, env, 0)[0] == 1 {
				return true
			}
		}
	}
	return false
}

// lookBeyond finds the first changed byte that was not due.
func (g *guard) lookBeyond(where string) {
	region := g.region()
	if g.found.beyond != "" || bytes.Equal(region, g.want) {
		return
	}
	at := 0
	for region[at] == g.want[at] {
		at++
	}
	l := g.columnAt(at)
	n := 0
	for k := at; k < len(region) && k < l.Offset+l.Bytes+marginBytes; k++ {
		if region[k] != g.want[k] {
			n++
		}
	}
	g.found.beyond = fmt.Sprintf("%s writes %s: %s", where, g.side(l, at), plural(n, "byte")+" that are not to be written")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// columnAt returns the column in which, or after which, a byte lies.
func (g *guard) columnAt(at int) (l trajectory.Layout) {
	whole, _ := g.driver.Whole()
	for _, next := range whole.Schema.Columns() {
		if next.Flags&trajectory.Guest != 0 && next.Offset <= at {
			l = next
		}
	}
	return l
}

// side describes where a byte lies relative to a tensor.
func (g *guard) side(l trajectory.Layout, at int) string {
	name := name(l)
	if at >= l.Offset+l.Bytes {
		return "after " + name
	}
	row := (at - l.Offset) / l.StrideT
	env, element := (at-l.Offset)%l.StrideT/l.StrideEnv, (at-l.Offset)%l.StrideEnv/l.StrideElem
	if l.StrideElem > l.StrideEnv {
		element, env = (at-l.Offset)%l.StrideT/l.StrideElem, (at-l.Offset)%l.StrideElem/l.StrideEnv
	}
	_, t := g.driver.Whole()
	switch env -= g.margin; {
	case env < 0:
		return fmt.Sprintf("before the first environment's %s", name)
	case env >= l.Envs-2*g.margin:
		return fmt.Sprintf("after the last environment's %s", name)
	case l.Column == trajectory.Action:
		return fmt.Sprintf("over the action of env %d", env/g.agents)
	default:
		return fmt.Sprintf("element %d of env %d's %s at another time (row %d, now is %d)", element, env/g.agents, name, row, t)
	}
}

// name returns a tensor's name with its type, such as obs f32[4].
func name(l trajectory.Layout) string {
	if l.Elems == 1 {
		return fmt.Sprintf("%v %v", l.Column, l.DType)
	}
	return fmt.Sprintf("%v %v[%d]", l.Column, l.DType, l.Elems)
}
