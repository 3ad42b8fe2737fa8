package member

import (
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/cluster"
	"github.com/rlhost/rlhost/core/component"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/placement"
)

// Away is the instances of a run that are on joined hosts, as the run's own host sees them. It is made before the run's service, and settled
// before the pipeline is built. Its methods may be called from any goroutine.
type Away struct {
	log   *slog.Logger
	parts *graph.Parts

	mu        sync.Mutex
	places    *places
	sources   map[string]*source           // by instance
	published map[string]version           // newest weights, by the instance that publishes them
	sent      map[string]map[string]uint64 // numbers of weights that were sent to hosts, by key and publisher
	told      []byte                       // to a host, last
	instances map[uint16]string            // names, by their IDs
	live      int                          // sources that have not stopped
	former    []*source                    // that stand for nothing any more; what was lost with them counts
	link      *cluster.Link                // of the service; nil until it has begun
	own       uint64                       // incarnation of this host
	paused    map[string]pausing           // instances that are to be paused
	rests     uint64                       // number of the newest rest
	work      Work
	task      uint16                        // of episodes
	current   *build                        // that the run has
	next      *build                        // of the change that is being prepared or made
	held      bool                          // there is one: lost instances wait for its end
	coming    map[string]placement.Instance // instances elsewhere of its graph
	fars      []*far
	lastFar   uint64
}

// version is a version of a policy, with this host's claim on it.
type version struct {
	number uint64
	lease  arena.Lease
}

var _ pipeline.Elsewhere = (*Away)(nil)

// NewAway returns the instances of a graph that a rule may place on joined hosts, where the run's own has that many slots; nil where no rule is.
func NewAway(g *graph.Graph, slots int, log *slog.Logger) *Away {
	ruled := func(x graph.Component) bool { return g.HostRuleOf(&x) != (graph.HostRule{}) }
	if !slices.ContainsFunc(g.Components, ruled) {
		return nil
	}
	return &Away{log: log, places: newPlaces(g, slots), sources: map[string]*source{}, published: map[string]version{}, sent: map[string]map[string]uint64{}, paused: map[string]pausing{}}
}

// Settle decides which instances are on joined hosts for the whole run: from then on these get as many as they have room for. Pipelines are built
// afterwards.
func (a *Away) Settle() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.places.settle()
	a.tellLeft(nil)
}

// Away is pipeline.Elsewhere's.
func (a *Away) Away(instance string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, away := a.places.away[instance]
	_, comes := a.coming[instance]
	return away || comes
}

// Host is pipeline.Elsewhere's.
func (a *Away) Host(instance string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.places.of(instance)
	if s == nil {
		return ""
	}
	return a.places.here[s.key].Name // none for a host that is lost
}

// Stand is pipeline.Elsewhere's.
func (a *Away) Stand(name string, of *graph.Component, made component.Component) component.Component {
	_, runs := made.(component.EnvRunner)
	s := &source{stand: stand{made}, away: a, name: name, runs: runs}
	if runs {
		return runner{s}
	}
	return s
}

// LostSteps is pipeline.Elsewhere's.
func (a *Away) LostSteps() (n uint64) {
	for _, s := range a.every() {
		n += s.lostSteps(a.isHere)
	}
	return n
}

func (a *Away) isHere(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, here := a.places.here[key]
	return here
}

// count returns how many instances are away.
func (a *Away) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.places.away)
}

func (a *Away) all() []*source {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.sources))
}

// every returns all sources, also the ones that stand for nothing any more.
func (a *Away) every() []*source {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.AppendSeq(slices.Clone(a.former), maps.Values(a.sources))
}

func (a *Away) started(s *source) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.live++
	if !a.held { // else Install says what stands for what
		a.sources[s.name] = s
	}
}

// serve makes the instances' hosts find what they need.
func (a *Away) serve(link *cluster.Link, own uint64, w Work) error {
	a.mu.Lock()
	a.link, a.own, a.work = link, own, w
	a.mu.Unlock()
	for verb, answer := range map[string]func(subject string, data []byte) []byte{
		verbWork: a.answerWork, verbStream: a.answerStream, verbState: a.answerState, verbWeights: a.answerWeights, verbPiece: a.answerPiece,
		verbRest: a.answerRest, verbOrder: a.answerOrder, verbDone: a.answerDone, verbLoaded: a.hearLoaded,
	} {
		if err := link.Answer(cluster.SubjectUp("*", verb), answer); err != nil {
			return err
		}
	}
	return nil
}

// here notes that a host has renewed its lease, and returns the number of the last change of what hosts have: 0 while they can have nothing.
func (a *Away) here(key string, h placement.Host) (changes uint64) {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	var ended []*share
	if _, known := a.places.here[key]; !known {
		a.places.here[key] = h
		if !a.held {
			ended = a.replace()
		}
	}
	if len(a.sources) == len(a.places.away) {
		changes = a.places.changes
	}
	a.mu.Unlock()
	a.leave(ended)
	return changes
}

// gone notes that a host's lease is over, for good where the host has left. Its instances go to hosts that have room.
func (a *Away) gone(key string, left bool) {
	if a == nil {
		return
	}
	a.mu.Lock()
	delete(a.places.here, key)
	delete(a.sent, key)
	ended := a.lose(key)
	if left {
		ended = append(ended, a.places.end(key)...)
	}
	if !a.held {
		ended = append(ended, a.replace()...)
	}
	a.mu.Unlock()
	for _, s := range a.all() {
		s.expire(key)
	}
	a.leave(ended)
	a.restWithout()
}

// replace places instances that have no host, with mu held.
func (a *Away) replace() (ended []*share) {
	if a.places.changes == 0 {
		return nil // it has not been settled
	}
	before := a.places.left
	ended = a.places.place()
	a.tellLeft(before)
	return ended
}

// tellLeft says what has no host, unless that was so before, with mu held.
func (a *Away) tellLeft(before []placement.Left) {
	if reflect.DeepEqual(a.places.left, before) {
		return
	}
	for _, left := range a.places.left {
		a.log.Warn("no host has room", "code", placement.CodeRoom, "instances", len(left.Indices), "of", strings.Join(left.Components, " and "), "why", left.Reason, "help", left.Help())
	}
}

// leave ends what hosts of ended shares send.
func (a *Away) leave(ended []*share) {
	for _, share := range ended {
		for _, s := range a.every() {
			s.leave(share.Number)
		}
	}
}

func (a *Away) answerWork(subject string, _ []byte) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	reply := workReply{
		Work: a.work, Text: a.current.graph.Resolved(), Task: a.task, Away: a.places.names(), Pieces: a.current.pieces.list, Programs: a.current.programs, Absent: a.current.absent,
	}
	if len(a.sources) == len(a.places.away) {
		reply.Changes, reply.Shares, reply.First = a.places.changes, a.places.on(cluster.KeyOf(subject)), map[string]int{}
		reply.SoA = map[string]bool{}
		for name, s := range a.sources {
			reply.First[name] = s.h.FirstEnv
			if soa, known := s.h.SoA(); known {
				reply.SoA[a.places.away[name].Component] = soa
			}
		}
	}
	return encode(reply)
}

// answerStream opens a stream. A host whose share has ended gets no answer: it hears that it has ended.
func (a *Away) answerStream(subject string, data []byte) []byte {
	var q streamRequest
	key := cluster.KeyOf(subject)
	if err := json.Unmarshal(data, &q); err != nil {
		return nil
	}
	s, link, own := a.sender(key, &q)
	if s == nil {
		return nil
	}
	reply, err := s.open(link, key, own, &q)
	if err != nil {
		reply.Refused = err.Error()
	}
	return encode(reply)
}

// sender returns the source of a stream, nil where the host does not have the instance.
func (a *Away) sender(key string, q *streamRequest) (s *source, link *cluster.Link, own uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, s := range a.sources {
		if of := a.places.of(name); name == q.Instance && of != nil && of.key == key && of.Number == q.Share {
			a.places.began(of)
			return s, a.link, a.own
		}
	}
	return nil, nil, 0
}

// state is what a host is to know now: numbers that only grow.
func (a *Away) state(key string) hostState {
	state := hostState{Weights: map[string]uint64{}}
	for _, s := range a.all() {
		s.mu.Lock()
		if s.of == key {
			state.Freed = append(state.Freed, freed{s.name, s.share, s.freed})
			s.told = s.freed
		}
		s.mu.Unlock()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, v := range a.published {
		state.Weights[name] = v.number
	}
	state.Rest, state.Orders = a.restOf(key), a.orders(key)
	return state
}

// answerPiece answers with a part of a file: of what runs, of what is to run, or of what a change under way brings.
func (a *Away) answerPiece(_ string, data []byte) []byte {
	a.mu.Lock()
	all := []*build{a.current, a.next}
	for _, f := range a.fars {
		all = append(all, f.to)
	}
	for _, s := range a.places.shares {
		all = append(all, s.build)
	}
	a.mu.Unlock()
	for _, b := range all {
		if b == nil {
			continue
		}
		if part := b.pieces.answer(data); part != nil {
			return part
		}
	}
	return nil
}

func (a *Away) answerState(subject string, _ []byte) []byte {
	return encode(a.state(cluster.KeyOf(subject)))
}

// tell tells a host its state.
func (a *Away) tell(key string) {
	state := a.state(key)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.link != nil && key != "" {
		a.link.Say(cluster.SubjectDown(key, verbState), a.message(key, &state)) // a host that does not hear it asks
	}
}

// tellFreed tells hosts of all blocks that are free: learners that share blocks may wait for more than half of them.
func (a *Away) tellFreed() {
	if a == nil {
		return
	}
	for _, s := range a.all() {
		s.tellFreed()
	}
}

// message is a state as a host hears it, with the newest weights where they are small and it has not been sent them. mu is held, and the message
// is valid until the next one.
func (a *Away) message(key string, state *hostState) []byte {
	sent := a.sent[key]
	if sent == nil {
		sent = map[string]uint64{}
		a.sent[key] = sent
	}
	var bodies []version
	for name, v := range a.published {
		if number, known := sent[name]; known && number == v.number || len(v.lease.Bytes()) > smallWeights {
			continue
		}
		sent[name], state.Weights[name] = v.number, v.number
		state.With, bodies = append(state.With, name), append(bodies, v)
	}
	text := encode(*state)
	a.told = append(binary.LittleEndian.AppendUint32(a.told[:0], uint32(len(text))), text...)
	for _, v := range bodies {
		a.told = appendPart(a.told, v.number, v.lease.Bytes(), 0)
	}
	return a.told
}

// publish keeps a new version of a policy, in place of the one before. Hosts that may act now are told; the others are with the next block that is
// free.
func (a *Away) publish(h *component.Host, m *hostabi.Message) {
	a.mu.Lock()
	from := a.instances[m.Sender]
	held, had := a.published[from]
	if had && held.number >= m.PolicyVersion {
		a.mu.Unlock()
		return
	}
	lease, err := h.Arenas.Lease(m.Handle)
	if err == nil {
		a.published[from] = version{m.PolicyVersion, lease}
	}
	a.mu.Unlock()
	if err == nil && had {
		err = held.lease.Release()
	}
	if err != nil {
		h.Fail(err)
		return
	}
	for _, key := range a.acting() {
		a.tell(key)
	}
}

// acting returns the hosts that are here without the ones that have no block to fill.
func (a *Away) acting() []string {
	a.mu.Lock()
	runners := map[string][]*source{}
	for key := range a.places.here {
		runners[key] = nil
	}
	for name, s := range a.sources {
		if of := a.places.of(name); s.runs && of != nil {
			runners[of.key] = append(runners[of.key], s)
		}
	}
	a.mu.Unlock()
	var keys []string
	for key, of := range runners {
		if len(of) == 0 || slices.ContainsFunc(of, func(s *source) bool { return !s.waits() }) {
			keys = append(keys, key)
		}
	}
	return keys
}

// answerWeights answers with a part of the newest version.
func (a *Away) answerWeights(_ string, data []byte) []byte {
	var q weightsRequest
	if err := json.Unmarshal(data, &q); err != nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok := a.published[q.Publisher]
	if !ok {
		return nil
	}
	return appendPart(nil, v.number, v.lease.Bytes(), q.Part)
}

// hearLoaded takes what a host tells of weights that it has loaded.
func (a *Away) hearLoaded(subject string, data []byte) []byte {
	var r loadedReply
	if json.Unmarshal(data, &r) != nil {
		return nil
	}
	a.mu.Lock()
	s, of := a.sources[r.Instance], a.places.of(r.Instance)
	a.mu.Unlock()
	if s != nil && of != nil && of.key == cluster.KeyOf(subject) {
		s.h.Trace.Loaded(s.name, r.Policy, r.Version, s.h.Trace.Now().Add(-r.Took))
	}
	return nil
}

// stopped releases the weights once nothing stands for any instance.
func (a *Away) stopped() (err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.live--; a.live > 0 {
		return nil
	}
	for id, v := range a.published {
		if e := v.lease.Release(); e != nil {
			err = e
		}
		delete(a.published, id)
	}
	return err
}

// Check returns why a pipeline cannot be on several hosts, and reads the files that they get.
func (a *Away) Check(parts *graph.Parts) (err error) {
	a.parts = parts
	a.current, err = newBuild(a.places.graph, parts)
	a.places.build = a.current
	return err
}

// Prepare is pipeline.Elsewhere's.
func (a *Away) Prepare(g *graph.Graph) error {
	next, err := newBuild(g, a.parts)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	coming, err := a.places.coming(g)
	if err == nil {
		a.next, a.held, a.coming = next, true, coming
	}
	return err
}

// Install is pipeline.Elsewhere's. Shares with other environments than the run's are replaced.
func (a *Away) Install(now pipeline.Installed) {
	a.mu.Lock()
	a.instances = now.Names
	moved := a.moved(&now)
	if moved {
		a.take(&now)
	}
	a.places.graph = now.Graph
	if a.next != nil && a.next.graph == now.Graph {
		a.current = a.next
	}
	a.task, a.places.build = now.Task, a.current
	var ended []*share
	for _, s := range slices.Clone(a.places.shares) {
		if s.envs != a.current.envs || moved {
			ended = append(ended, a.places.endOne(s.Number)...)
		}
	}
	a.mu.Unlock()
	a.leave(ended)
}

// moved reports whether something else stands for an instance than before, or there are others, with mu held.
func (a *Away) moved(now *pipeline.Installed) bool {
	for name, made := range now.Stands {
		if a.sources[name] != sourceOf(made) {
			return true
		}
	}
	return len(a.sources) != len(now.Stands)
}

// take makes the sources be the ones that a run has now, with mu held.
func (a *Away) take(now *pipeline.Installed) {
	before, paused := a.sources, a.paused
	a.sources, a.paused = map[string]*source{}, map[string]pausing{}
	a.places.begin(now.Graph)
	for i := range now.Graph.Components {
		x := &now.Graph.Components[i]
		for index := range x.Count {
			name := x.InstanceName(index)
			if s := sourceOf(now.Stands[name]); s != nil {
				a.sources[name], a.places.away[name] = s, placement.Instance{Component: x.Name, Index: index}
			}
		}
	}
	current := slices.Collect(maps.Values(a.sources))
	for _, s := range before {
		if !slices.Contains(current, s) {
			a.former = append(a.former, s)
		}
	}
	for _, p := range paused {
		if slices.Contains(current, p.s) {
			a.paused[p.s.name] = p
		}
	}
	a.rests++
}

// sourceOf returns the source of what Stand has returned; nil for none.
func sourceOf(made component.Component) *source {
	switch s := made.(type) {
	case runner:
		return s.source
	case *source:
		return s
	}
	return nil
}

// Release is pipeline.Elsewhere's.
func (a *Away) Release() {
	a.mu.Lock()
	a.next, a.held, a.coming = nil, false, nil
	ended := a.replace()
	a.mu.Unlock()
	a.leave(ended)
	a.restWithout()
}
