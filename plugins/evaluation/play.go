package evaluation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/tape"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
)

// play is one running evaluation.
type play struct {
	o        Options
	seed     uint64 // of episodes and actions: of the stream that the options' seed is for
	driver   *env.Driver
	players  []Player          // the evaluated one and the others
	bound    []*policy.Binding // by player; nil where the actor takes observations as they are
	alone    []int             // by agent: its player where no episode says so, nobody if none can
	result   Result
	episode  []int // that each environment plays, -1 when it idles
	steps    []uint64
	returns  []float64 // of the evaluated player's agents
	byAgent  []float64 // [envs, agents], of each of them; nil where the agents have no names of their own
	against  []float64 // of the others'
	next     int       // next episode to start
	playing  int
	mask     []byte
	seeds    []uint64
	agents   *trajectory.Agents
	out      []byte // what has become of the first life of each agent
	over     []bool // by episode: it has been played
	givenUp  []bool // by episode: it was cut off
	lost     []bool // the process that the environment lived in has died
	losses   int
	lasting  []byte // that each episode begins with
	requests []policy.Request
	views    policy.Views
	tape     *tape.Writer // nil: nothing is recorded

	// In a trial each environment plays its own quota of episodes and makes at most ceiling env steps.
	quota   int // 0: a free environment takes the next episode
	ceiling uint64
	begun   []int
	spent   []uint64
	calls   int
	took    []time.Duration // by calls of Step, the first ones
}

// maxTimed bounds how many calls are timed.
const maxTimed = 1 << 14

// newPlay prepares to play while wanted lasts; stream is the random stream of the play.
func newPlay(wanted context.Context, o Options, stream env.Stream) (*play, error) {
	spec := o.Plugin.Spec()
	n := min(max(o.Envs, 1), o.Episodes)
	if spec.MaxEnvs > 0 {
		n = min(n, spec.MaxEnvs)
	}
	p := &play{
		o: o, seed: stream.Seed(o.Seed), players: append([]Player{o.Player}, o.Others...),
		result: Result{
			Returns: make([]float64, o.Episodes), Lengths: make([]int, o.Episodes), Greedy: o.Greedy,
		},
		episode: make([]int, n), steps: make([]uint64, n), returns: make([]float64, n), against: make([]float64, n),
		mask: make([]byte, n), seeds: make([]uint64, n), lost: make([]bool, n),
		begun: make([]int, n), spent: make([]uint64, n), over: make([]bool, o.Episodes), givenUp: make([]bool, o.Episodes),
	}
	if len(o.Others) > 0 {
		p.result.Against = make([]float64, o.Episodes)
	}
	if spec.OwnNames() != nil {
		p.result.ByAgent, p.byAgent = make([]float64, o.Episodes*spec.Agents()), make([]float64, n*spec.Agents())
	}
	var err error
	p.driver, err = env.NewDriver(o.Plugin, env.DriverOptions{
		Options: env.Options{Name: playName, Envs: n, Seed: p.seed, Wanted: wanted},
		SoA:     spec.Caps&hostabi.CapPreferSoA != 0, Memory: p.memory(),
	})
	if err != nil {
		return nil, err
	}
	if err := p.bind(); err != nil {
		return nil, errors.Join(err, p.driver.Close())
	}
	if l, ok := p.driver.Env.(env.Lasting); ok {
		if p.lasting = o.Lasting; p.lasting == nil {
			p.lasting = l.SaveLasting(0, nil)
		}
	}
	p.agents, p.out = trajectory.NewAgents(p.driver.Schema()), make([]byte, p.driver.Schema().Rows())
	if err := p.cast(); err != nil {
		return nil, errors.Join(err, p.driver.Close())
	}
	return p, nil
}

// playName is the name of who plays, in messages about its environments.
const playName = "evaluation"

// nobody plays agents that draw their actions at random.
const nobody = -1

// cast finds who can play which agent.
func (p *play) cast() error {
	schema := p.driver.Schema()
	for agent := range p.each() {
		group := schema.GroupOf(agent)
		can := func(x Player) bool { return x.Group == group }
		p.alone = append(p.alone, slices.IndexFunc(p.players, can)) // nobody is -1
		if len(p.players) == 1 {
			continue
		}
		if x := p.o.Plays(0, agent); !can(p.players[x]) {
			return fmt.Errorf("%s is of group %q, and the policy that is to play it is for another one", schema.Spec.Agent(agent), schema.Spec.Groups[group].Name)
		}
	}
	return nil
}

// memory describes the earlier rows that the players need.
func (p *play) memory() (m trajectory.Memory) {
	for i := range p.players {
		if n := p.players[i].Network; n != nil {
			m = m.And(n.Memory())
		}
	}
	return m
}

// bind finds the players' inputs in the blocks.
func (p *play) bind() error {
	for i := range p.players {
		var bound *policy.Binding
		if n := p.players[i].Network; n != nil {
			var err error
			if bound, err = n.Bind(p.driver.Schema().OfGroup(p.players[i].Group)); err != nil {
				return err
			}
		}
		p.bound = append(p.bound, bound)
	}
	return nil
}

func (p *play) run(ctx context.Context) error {
	if err := p.open(); err != nil {
		return p.ended(ctx, err)
	}
	began := time.Now()
	for p.playing > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.late() {
			p.cut()
			return nil
		}
		if err := p.step(); err != nil {
			return p.ended(ctx, err)
		}
		if worked := time.Since(began); p.o.Share > 0 && p.o.Share < 1 && worked >= turn {
			pause(ctx, time.Duration(float64(worked)*(1-p.o.Share)/p.o.Share))
			began = time.Now()
		}
	}
	return nil
}

// late reports whether the time of the play is over.
func (p *play) late() bool { return !p.o.Until.IsZero() && time.Now().After(p.o.Until) }

// ended returns the meaning of an environment's error: ctx's own error if ctx has ended, none if the time of the
// play is over, since either cuts a call.
func (p *play) ended(ctx context.Context, err error) error {
	if stopped := ctx.Err(); stopped != nil {
		return stopped
	}
	if !p.late() {
		return err
	}
	p.cut()
	return nil
}

// cut keeps the outcomes of whole rounds: the first outcomes of a round would be its short episodes.
func (p *play) cut() {
	n := len(p.episode)
	whole := slices.Index(p.over, false) / n * n
	r := &p.result
	r.Cut, r.Unfinished = true, 0
	r.Returns, r.Lengths = r.Returns[:whole], r.Lengths[:whole]
	if r.Against != nil {
		r.Against = r.Against[:whole]
	}
	if r.ByAgent != nil {
		r.ByAgent = r.ByAgent[:whole*p.each()]
	}
	for _, yes := range p.givenUp[:whole] {
		if yes {
			r.Unfinished++
		}
	}
}

// turn is how long a play with a share of a processor works between two pauses.
const turn = time.Millisecond

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// open begins an episode everywhere.
func (p *play) open() error {
	for env := range p.episode {
		p.start(env)
	}
	return p.reset(nil)
}

// start gives an environment the next episode, or none when all are taken.
func (p *play) start(index int) {
	p.clear(index)
	e := p.next
	if p.quota > 0 {
		e = index*p.quota + p.begun[index]
	}
	if p.quota > 0 && p.begun[index] == p.quota || e == p.o.Episodes || p.exhausted(index) {
		p.episode[index] = -1
		return
	}
	p.episode[index] = e
	p.seeds[index] = env.Seed(p.seed, p.keyOf(e))
	p.begun[index]++
	p.next++
	p.playing++
}

// clear forgets an environment's episode.
func (p *play) clear(index int) {
	p.steps[index], p.returns[index], p.against[index] = 0, 0, 0
	if p.byAgent != nil {
		clear(p.byAgent[index*p.each():][:p.each()])
	}
	for agent := range p.each() {
		p.agents.SetRunning(index*p.each()+agent, false)
		p.out[index*p.each()+agent] = lives
	}
}

// keyOf is the key of an episode's seed and draws: its number, except for episodes that must be alike.
func (p *play) keyOf(episode int) int { return episode / max(p.o.Alike, 1) }

// each is how many agents an environment has.
func (p *play) each() int { return p.driver.Schema().Agents }

// exhausted reports whether an environment may make no more steps.
func (p *play) exhausted(env int) bool { return p.ceiling > 0 && p.spent[env] >= p.ceiling }

// step acts, steps the environments and begins new episodes where some have ended.
func (p *play) step() error {
	tr, row := p.driver.Acting()
	if row == 0 { // the actions of the rows before are overwritten from here on
		p.tape.Bind(tr)
	}
	if err := p.act(); err != nil {
		return err
	}
	p.tape.Step(row)
	began := time.Now()
	_, err := p.driver.Step()
	if p.calls++; p.quota > 0 && len(p.took) < maxTimed {
		p.took = append(p.took, time.Since(began))
	}
	p.tape.Lost(err)
	if err = p.lose(err); err != nil {
		return err
	}
	p.agents.Step(p.driver.Stepped())
	if env, err := p.agents.Idle(); err != nil {
		return p.fault(env, err)
	}
	if !p.count() {
		return nil
	}
	return p.reset(p.mask)
}

// fault blames an environment for its output of a step.
func (p *play) fault(index int, err error) error {
	fault := &env.Fault{Kind: env.FaultOutput, Name: playName, Source: p.driver.Schema().Spec.Name, Call: hostabi.ExportStep, Env: index,
		Step: uint64(p.calls), Err: err}
	p.tape.Lost(fault)
	return fault
}

// maxLosses is how often environments may be lost in an evaluation.
const maxLosses = 5

// lose accepts an error that reports lost environments, as long as that happens rarely. Their episodes are played again
// from the beginning, with the same seeds and therefore to the same ends. It returns any other error.
func (p *play) lose(err error) error {
	spans := env.Lost(err)
	if spans == nil {
		return err
	}
	if p.losses++; p.losses > maxLosses {
		return err
	}
	for _, span := range spans {
		for env := range span.Count {
			p.lost[span.First+env] = true
		}
	}
	return nil
}

// reset begins the episodes of mask, or all, and again any lost meanwhile.
func (p *play) reset(mask []byte) error {
	err := p.begin(mask)
	for err != nil {
		if err = p.lose(err); err != nil {
			return err
		}
		for env, lost := range p.lost {
			p.mask[env] = 0
			if lost {
				p.again(env)
			}
		}
		err = p.begin(p.mask)
	}
	return nil
}

// begin begins the episodes of mask, or all. An episode has no influence on the next, which may be played in another environment.
func (p *play) begin(mask []byte) error {
	if l, ok := p.driver.Env.(env.Lasting); ok {
		for index := range p.episode {
			if mask == nil || mask[index] != 0 {
				l.LoadLasting(index, p.lasting)
			}
		}
	}
	p.tape.Reset(mask, p.seeds)
	err := p.driver.Reset(mask, p.seeds)
	p.tape.Lost(err)
	return err
}

// again restarts the episode of a lost environment; an idle one starts any.
func (p *play) again(env int) {
	p.clear(env)
	p.mask[env], p.lost[env] = 1, false
}

// act asks each player for its agents' actions.
func (p *play) act() error {
	some := slices.Contains(p.alone, nobody)
	if some {
		p.driver.Draw(p.word)
	}
	for i := range p.players {
		all := p.all(i)
		switch {
		case len(p.players) > 1 || some:
			p.requestSome(&all, i)
		case p.o.Greedy:
			p.requests = append(p.requests, all)
		default:
			p.requestAll(&all)
		}
		if err := p.players[i].Actor.Act(p.requests); err != nil {
			return err
		}
	}
	tr, row := p.driver.Acting()
	tr.KeepState(row)
	return nil
}

// word returns the random bits of an agent without a player, from its episode's key.
func (p *play) word(row int) uint64 {
	index := row / p.each()
	return env.Seed(env.Seed(p.seed+p.steps[index], p.keyOf(max(p.episode[index], 0))), row%p.each())
}

// all returns the request for all rows as a player sees them.
func (p *play) all(player int) policy.Request {
	p.requests, p.views = p.requests[:0], p.views[:0]
	tr, row := p.driver.Acting()
	tr.Schema = tr.Schema.OfGroup(p.players[player].Group)
	r := policy.Request{LogProb: p.driver.LogProb(), Value: p.driver.Value(), Seed: p.seed, Greedy: p.o.Greedy}
	n := len(p.views)
	p.views = tr.Rows(p.views, trajectory.Action, row)
	r.Action = p.views.From(n)
	n = len(p.views)
	p.views = tr.RawActions(p.views, row)
	r.Raw = p.views.From(n)
	n = len(p.views)
	p.views = tr.Masks(p.views, row)
	r.Mask = p.views.From(n)
	n = len(p.views)
	bound := p.bound[player]
	if bound == nil {
		p.views = tr.Rows(p.views, trajectory.Obs, row)
		r.Obs = p.views.From(n)
		return r
	}
	p.views = bound.Row(p.views, tr, row)
	r.Obs, r.Age = p.views.From(n), bound.Ages(tr, row)
	r.State, r.StateOut = bound.State(tr, row), bound.State(tr, row+1)
	return r
}

// requestAll requests all rows. Sampled actions are keyed by episode and agent, so a request has rows that play successive
// episodes in step.
func (p *play) requestAll(all *policy.Request) {
	for env, next := 0, 0; env < len(p.episode); env = next {
		next = p.inStep(env)
		p.request(all, env, 0, next*p.each())
	}
}

// requestSome requests the rows of a player, of agents that follow one another in an environment together.
func (p *play) requestSome(all *policy.Request, player int) {
	each := p.each()
	for env, episode := range p.episode {
		for agent, next := 0, 0; agent < each; agent = next {
			plays := p.plays(episode, agent)
			for next = agent + 1; next < each && p.plays(episode, next) == plays; {
				next++
			}
			if plays == player {
				p.request(all, env, agent, env*each+next)
			}
		}
	}
}

// plays returns the player of an agent, or nobody. For an idle environment it does not matter.
func (p *play) plays(episode, agent int) int {
	if len(p.players) == 1 || episode < 0 {
		return p.alone[agent]
	}
	return p.o.Plays(episode, agent)
}

// request requests the rows from an agent of an environment to the row end.
func (p *play) request(all *policy.Request, env, agent, end int) {
	r := all.Slice(env*p.each()+agent, end, &p.views)
	r.FirstEnv, r.Step = uint32(p.keyOf(max(p.episode[env], 0))*p.each()+agent), p.steps[env]
	p.requests = append(p.requests, r)
}

// inStep returns the end of the environments from first on whose episodes succeed each other and are at the same step,
// or that idle: their actions do not matter.
func (p *play) inStep(first int) (end int) {
	idle := p.episode[first] < 0
	for end = first + 1; end < len(p.episode); end++ {
		follows := p.keyOf(p.episode[end]) == p.keyOf(p.episode[end-1])+1 && p.steps[end] == p.steps[first]
		if idle && p.episode[end] >= 0 || !idle && !follows {
			break
		}
	}
	return end
}

// count adds up the step and reports whether environments need a reset, which mask and seeds then describe.
func (p *play) count() (reset bool) {
	reward, each := p.driver.Reward(), p.each()
	for env := range p.episode {
		p.mask[env] = 0
		if p.lost[env] {
			p.again(env)
			reset = true
			continue
		}
		ended := p.endLives(env)
		if p.episode[env] >= 0 {
			for agent, r := range reward[env*each : (env+1)*each] {
				if p.out[env*each+agent] == again {
					continue
				}
				if p.plays(p.episode[env], agent) == 0 {
					p.returns[env] += float64(r)
					if p.byAgent != nil {
						p.byAgent[env*each+agent] += float64(r)
					}
				} else {
					p.against[env] += float64(r)
				}
			}
			p.steps[env]++
			p.spent[env]++
			if !ended && (p.exhausted(env) || p.o.MaxSteps > 0 && p.steps[env] >= p.o.MaxSteps) {
				p.result.Unfinished++
				p.givenUp[p.episode[env]] = true
				ended = true
			}
		}
		if !ended {
			continue
		}
		p.mask[env], reset = 1, true
		p.record(env)
		p.start(env)
	}
	return reset
}

// What has become of the first life of an agent.
const (
	lives = iota
	dead  // it has ended, and the agent has not acted since
	again // the agent acts again
)

// endLives takes in a step of an environment, and reports whether its episode is over for the play. That is so where its own is, and where
// the first life of each agent has ended, because a world in which agents begin again may run for ever. What an agent gets in a second
// life does not count.
func (p *play) endLives(env int) (over bool) {
	first, end := p.driver.Schema().RowsOf(env)
	if p.agents.EnvEnded[env] != 0 {
		return true
	}
	tr, row := p.driver.Stepped()
	acts, left := tr.Acts(row), false
	for i := first; i < end; i++ {
		switch acting := acts == nil || acts[i] != 0; {
		case p.out[i] != lives && acting:
			p.out[i] = again
		case p.out[i] != lives:
		case p.agents.Ended[i] != 0:
			p.out[i], over = dead, true
		case p.agents.Running(i):
			left = true
		}
	}
	return over && !left
}

func (p *play) record(env int) {
	if e := p.episode[env]; e >= 0 {
		own := 0
		for agent := range p.each() {
			plays := p.plays(e, agent) == 0
			if plays {
				own++
			}
			if p.byAgent == nil {
				continue
			}
			told := &p.result.ByAgent[e*p.each()+agent]
			if *told = p.byAgent[env*p.each()+agent]; !plays {
				*told = math.NaN()
			}
		}
		p.result.Returns[e], p.result.Lengths[e] = p.returns[env]/float64(own), int(p.steps[env])
		if p.result.Against != nil {
			p.result.Against[e] = p.against[env] / float64(p.each()-own)
		}
		p.over[e] = true
		if p.playing--; p.o.Done != nil {
			p.o.Done()
		}
	}
}
