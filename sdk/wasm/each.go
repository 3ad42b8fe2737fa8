package wasm

import (
	"encoding"

	"github.com/rlhost/rlhost/sdk"
)

// each are environments that step one by one.
type each[E any] struct {
	envs    []E
	now     int
	results []sdk.Result // of the agents of one environment; nil where the result of Step is all
	apart   bool         // each agent has its own flags
}

// reward writes the rewards and flags of the current environment's agents in its last step. row is its row in rewards and flags.
func (e *each[E]) reward(row int, step sdk.Result, rewards []float32, terminated, truncated []uint8) {
	for k := range e.results {
		e.results[k] = step
	}
	if env, ok := any(e.envs[e.now]).(sdk.Rewarder); ok {
		env.Reward(e.results)
	}
	agents := len(e.results)
	for k, r := range e.results {
		rewards[row*agents+k] = r.Reward
	}
	if !e.apart {
		terminated[row], truncated[row] = flag(step.Terminated), flag(step.Truncated)
		return
	}
	for k, r := range e.results {
		terminated[row*agents+k], truncated[row*agents+k] = flag(r.Terminated), flag(r.Truncated)
	}
}

// put writes the result of the current environment's last step, in row i of each column.
func (e *each[E]) put(i int, r sdk.Result, rewards, discounts []float32, terminated, truncated []uint8) {
	if e.results != nil {
		e.reward(i, r, rewards, terminated, truncated)
		return
	}
	rewards[i], terminated[i], truncated[i] = r.Reward, flag(r.Terminated), flag(r.Truncated)
	if discounts != nil {
		discounts[i] = r.Discount
	}
}

// tell has the environments from first on tell their figures, n each.
func (e *each[E]) tell(first, n int, figures []float32) {
	for i := 0; n > 0 && i < len(figures); i += n {
		e.now = first + i/n
		any(e.envs[e.now]).(sdk.Teller).Tell(figures[i:][:n:n])
	}
}

func newEach[E any](spec *sdk.Spec, c *sdk.Config, n int, newEnv func(*sdk.Config) (E, error)) (each[E], error) {
	all := each[E]{envs: make([]E, n), apart: spec.Apart || spec.Respawn}
	if _, rewards := any(*new(E)).(sdk.Rewarder); rewards || spec.Agents > 1 {
		all.results = make([]sdk.Result, spec.Agents)
	}
	for i := range all.envs {
		env, err := newEnv(c)
		if err != nil {
			return all, err
		}
		all.envs[i] = env
	}
	return all, nil
}

func (e *each[E]) current() int { return e.now }

// ActionMask is called only where environments are sdk.Maskers.
func (e *each[E]) ActionMask(i int, legal []uint8) { any(e.envs[i]).(sdk.Masker).ActionMask(legal) }

// Active leaves everybody acting where environments are no sdk.TurnTakers.
func (e *each[E]) Active(i int, acts []uint8) {
	if env, ok := any(e.envs[i]).(sdk.TurnTaker); ok {
		env.Active(acts)
	}
}

// TellReset is called only where environments are sdk.ResetTellers.
func (e *each[E]) TellReset(i int, infos []float32) {
	any(e.envs[i]).(sdk.ResetTeller).TellReset(infos)
}

// SetLast is called only where environments are sdk.Respawners.
func (e *each[E]) SetLast(last func(i, agent int)) {
	for i := range e.envs {
		any(e.envs[i]).(sdk.Respawner).SetLast(func(agent int) { last(i, agent) })
	}
}

// SetParams is called only where environments are sdk.ParamTakers.
func (e *each[E]) SetParams(i int, params []float32) {
	e.now = i
	any(e.envs[i]).(sdk.ParamTaker).SetParams(params)
}

// stringer is fmt.Stringer, without package fmt: it would make a guest half as large again.
type stringer interface{ String() string }

func (e *each[E]) text(i int) (string, bool) {
	env, ok := any(e.envs[i]).(stringer)
	if !ok {
		return "", false
	}
	return env.String(), true
}

// drawer is nil where environments are no sdk.Drawers.
func (e *each[E]) drawer() sdk.BatchDrawer {
	if _, ok := any(*new(E)).(sdk.Drawer); !ok {
		return nil
	}
	return drawers[E]{e}
}

// drawers draw each by itself.
type drawers[E any] struct{ all *each[E] }

func (d drawers[E]) Draw(i int, p *sdk.Picture) { any(d.all.envs[i]).(sdk.Drawer).Draw(p) }

func (e *each[E]) AppendEnv(dst []byte, i int) ([]byte, error) {
	env, ok := any(e.envs[i]).(encoding.BinaryAppender)
	if !ok {
		return nil, errUnsupported
	}
	return env.AppendBinary(dst)
}

func (e *each[E]) LoadEnv(i int, data []byte) error {
	env, ok := any(e.envs[i]).(encoding.BinaryUnmarshaler)
	if !ok {
		return errUnsupported
	}
	return env.UnmarshalBinary(data)
}

// singles makes a batch of environments with one observation.
type singles[A sdk.Action, O sdk.Element, E sdk.Env[A, O]] struct{ each[E] }

func (s *singles[A, O, E]) Reset(i int, rng *sdk.Rand, obs []O) {
	s.now = i
	s.envs[i].Reset(rng, obs)
}

func (s *singles[A, O, E]) Step(first int, rngs []sdk.Rand, rows sdk.Rows[A, O]) {
	n := len(rngs)
	actionElems, obsElems := len(rows.Actions)/n, len(rows.Obs)/n
	terminated, truncated := rows.Terminated[:n], rows.Truncated[:n]
	for i, env := range s.envs[first : first+n] {
		s.now = first + i
		r := env.Step(&rngs[i], rows.Actions[i*actionElems:][:actionElems:actionElems], rows.Obs[i*obsElems:][:obsElems:obsElems])
		if s.results != nil {
			s.reward(i, r, rows.Rewards, rows.Terminated, rows.Truncated)
			continue
		}
		rows.Rewards[i] = r.Reward
		terminated[i], truncated[i] = flag(r.Terminated), flag(r.Truncated)
		if rows.Discounts != nil {
			rows.Discounts[i] = r.Discount
		}
	}
	s.tell(first, len(rows.Figures)/n, rows.Figures)
}

func flag(set bool) uint8 {
	if set {
		return 1
	}
	return 0
}

// dicts makes a batch of environments with several observations, which go past the batch's own.
type dicts[A sdk.Action, E sdk.DictEnv[A]] struct {
	each[E]
	parts *parts
}

func (d *dicts[A, E]) observe(p *parts) { d.parts = p }

func (d *dicts[A, E]) Reset(i int, rng *sdk.Rand, _ []uint8) {
	d.now = i
	d.envs[i].Reset(rng, d.parts.open(i, 1))
	d.parts.shut(i)
}

func (d *dicts[A, E]) Step(first int, rngs []sdk.Rand, rows sdk.Rows[A, uint8]) {
	n := len(rngs)
	actionElems := len(rows.Actions) / n
	for i, env := range d.envs[first : first+n] {
		d.now = first + i
		r := env.Step(&rngs[i], rows.Actions[i*actionElems:][:actionElems:actionElems], d.parts.open(first+i, 1))
		d.parts.shut(first + i)
		d.put(i, r, rows.Rewards, rows.Discounts, rows.Terminated, rows.Truncated)
	}
	d.tell(first, len(rows.Figures)/n, rows.Figures)
}

// composites makes a batch of environments with several actions, which go past the batch's own, as their observations do.
type composites[E sdk.CompositeEnv] struct {
	each[E]
	parts *parts
	moves *moves
}

func (c *composites[E]) observe(p *parts) { c.parts = p }

func (c *composites[E]) act(m *moves) { c.moves = m }

func (c *composites[E]) Reset(i int, rng *sdk.Rand, _ []uint8) {
	c.now = i
	c.envs[i].Reset(rng, c.parts.open(i, 1))
	c.parts.shut(i)
}

func (c *composites[E]) Step(first int, rngs []sdk.Rand, rows sdk.Rows[int32, uint8]) {
	n := len(rngs)
	for i, env := range c.envs[first : first+n] {
		c.now = first + i
		r := env.Step(&rngs[i], c.moves.of(first+i, 1), c.parts.open(first+i, 1))
		c.parts.shut(first + i)
		c.put(i, r, rows.Rewards, rows.Discounts, rows.Terminated, rows.Truncated)
	}
	c.tell(first, len(rows.Figures)/n, rows.Figures)
}

// authored are the methods of a batch of an author's own that it need not have.
type authored[B any] struct{ own B }

// dictBatch makes a batch of an author's own with several observations, which go past the batch's own.
type dictBatch[A sdk.Action, B sdk.DictBatch[A]] struct {
	authored[B]
	parts *parts
}

func (d *dictBatch[A, B]) observe(p *parts) { d.parts = p }

func (d *dictBatch[A, B]) Reset(i int, rng *sdk.Rand, _ []uint8) {
	d.own.Reset(i, rng, d.parts.open(i, 1))
	d.parts.shut(i)
}

func (d *dictBatch[A, B]) Step(first int, rngs []sdk.Rand, rows sdk.Rows[A, uint8]) {
	d.own.Step(first, rngs, rows, d.parts.open(first, len(rngs)))
	d.parts.shut(first)
}

// compositeBatch is the same with several actions.
type compositeBatch[B sdk.CompositeBatch] struct {
	authored[B]
	parts *parts
	moves *moves
}

func (c *compositeBatch[B]) observe(p *parts) { c.parts = p }

func (c *compositeBatch[B]) act(m *moves) { c.moves = m }

func (c *compositeBatch[B]) Reset(i int, rng *sdk.Rand, _ []uint8) {
	c.own.Reset(i, rng, c.parts.open(i, 1))
	c.parts.shut(i)
}

func (c *compositeBatch[B]) Step(first int, rngs []sdk.Rand, rows sdk.Rows[int32, uint8]) {
	c.own.Step(first, rngs, rows, c.moves.of(first, len(rngs)), c.parts.open(first, len(rngs)))
	c.parts.shut(first)
}

// ActionMask is called only where the batch is an sdk.BatchMasker.
func (d *authored[B]) ActionMask(i int, legal []uint8) {
	any(d.own).(sdk.BatchMasker).ActionMask(i, legal)
}

// Active leaves everybody acting where the batch is no sdk.BatchTurnTaker.
func (d *authored[B]) Active(i int, acts []uint8) {
	if own, ok := any(d.own).(sdk.BatchTurnTaker); ok {
		own.Active(i, acts)
	}
}

// drawer is nil where the batch is no sdk.BatchDrawer.
func (d *authored[B]) drawer() sdk.BatchDrawer {
	own, _ := any(d.own).(sdk.BatchDrawer)
	return own
}

// TellReset is called only where the batch is an sdk.BatchResetTeller.
func (d *authored[B]) TellReset(i int, infos []float32) {
	any(d.own).(sdk.BatchResetTeller).TellReset(i, infos)
}

// SetLast is called only where the batch is an sdk.BatchRespawner.
func (d *authored[B]) SetLast(last func(i, agent int)) { any(d.own).(sdk.BatchRespawner).SetLast(last) }

// SetParams is called only where the batch is an sdk.BatchParamTaker.
func (d *authored[B]) SetParams(i int, params []float32) {
	any(d.own).(sdk.BatchParamTaker).SetParams(i, params)
}

func (d *authored[B]) AppendEnv(dst []byte, i int) ([]byte, error) {
	saver, ok := any(d.own).(sdk.BatchSaver)
	if !ok {
		return nil, errUnsupported
	}
	return saver.AppendEnv(dst, i)
}

func (d *authored[B]) LoadEnv(i int, data []byte) error {
	saver, ok := any(d.own).(sdk.BatchSaver)
	if !ok {
		return errUnsupported
	}
	return saver.LoadEnv(i, data)
}
