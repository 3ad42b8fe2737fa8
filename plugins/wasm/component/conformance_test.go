package component

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	core "github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

const conformance = "../../../hostabi/conformance/component/"

// conformanceCase is an entry of cases.json; its README says what the fields mean.
type conformanceCase struct {
	Name, Rule, Outcome string
	Says                []string
	TooOld              bool `json:"too_old"`
	Table               map[string]any
	Grants              []string
	Denied, Asks        bool
	Slots, Unconnected  []string
	Room                int
	Messages            []conformanceMessage
	Pause               bool
	Until               int
	Snapshot            []string
	Successor           *bool
	Out, Notes          *int
	Note                []uint64
	Rewards, Seen       []float32
	Senders             []uint16
	PassesOn            bool `json:"passes_on"`
	Faults              *uint64
	FaultsLeast         uint64 `json:"faults_least"`
	Metrics             map[string]float64
	Stops               []core.StopReason
	Log                 []string
	Questions           []conformanceQuestion
	QuestionsThen       []conformanceQuestion `json:"questions_then"`
	Others              []conformanceAnswer
}

// conformanceAnswer is what a case asks another component, in the order of asking, and the answer: none where there is neither.
type conformanceAnswer struct {
	Ask         string
	Args, Reply json.RawMessage
	Fault       hostabi.AnswerFault
	Text        string
	Type, Place string
}

// err is the error of the other component.
func (a *conformanceAnswer) err() error {
	switch a.Fault {
	case hostabi.AnswerRaised:
		return &core.Raised{Type: a.Type, Text: a.Text, Place: a.Place}
	case hostabi.AnswerLost:
		return core.ErrLost
	}
	return nil
}

// conformanceQuestion is a request that a case gets, and its answer or the words of its error.
type conformanceQuestion struct {
	Name        string
	Args, Reply json.RawMessage
	Error       string
	Wrong       bool // the error is about the arguments
}

// conformanceMessage is a message that a case gets.
type conformanceMessage struct {
	Slot          string
	Block         *int
	T, Split      uint32
	PolicyVersion uint64 `json:"policy_version"`
	Kind, Sender  uint16
	Inline        [2]uint64
}

// The host handles every module of the conformance set as the set says.
func TestConformance_HoldsForThisHost(t *testing.T) {
	text, err := os.ReadFile(conformance + "cases.json")
	must(t, err)
	var cases []conformanceCase
	must(t, json.Unmarshal(text, &cases))
	sources, err := os.ReadDir(conformance)
	must(t, err)
	sources = slices.DeleteFunc(sources, func(f os.DirEntry) bool { return !strings.HasSuffix(f.Name(), ".wat") })
	if len(sources) != len(cases) {
		t.Errorf("%d cases, %d sources", len(cases), len(sources))
	}
	l := modules(t)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			again := c
			first, second := c.play(t, l), again.play(t, l)
			if !slices.Equal(first, second) {
				t.Errorf("it notes %v and then %v", first, second)
			}
		})
	}
}

// subject is an instance that a case is about.
type subject struct {
	*plugintest.Rig
	g      *component
	blocks *blocks
	all    []hostabi.Handle
	full   *loop.Receiver // the receiver of note, where there is little room
	loan   arena.Loan     // the block of requests
	t      testing.TB
}

// records are the outputs of the instances of a case.
type records struct {
	out, note []hostabi.Message
	seen      []float32
}

func (c *conformanceCase) source() Source {
	return Source{Source: env.Source{Name: "guest", Use: conformance + c.Name + ".wasm", Grants: c.Grants, Limits: env.Limits{Step: twoSlices}}, MaxRestarts: 3}
}

// play follows the README and returns the numbers that came on note.
func (c *conformanceCase) play(t *testing.T, l *Modules) (numbers []uint64) {
	var seen records
	made, err := l.Component(c.source())
	if err == nil {
		err = made.Configure(plugintest.DecodeTable(c.Table))
	}
	if c.Outcome == "refused" {
		c.tells(t, err)
		if tooOld := strings.Contains(fmt.Sprint(err), "update rlhost"); tooOld != c.TooOld {
			t.Errorf("%v: refused as too new for the host: %v, want %v", err, tooOld, c.TooOld)
		}
		return nil
	}
	must(t, err)
	x, err := c.start(t, made, &seen)
	if c.Outcome == "fails" {
		c.tells(t, err)
		return nil
	}
	must(t, err)
	if err := c.work(x, &seen); c.Outcome == "ends" {
		c.tells(t, err)
		return nil
	} else if err != nil {
		t.Fatalf("%v; %s", err, x.Log.String())
	}
	c.goOn(t, l, x, &seen)
	must(t, x.g.Stop())
	c.compare(t, x, &seen)
	for _, m := range seen.note {
		numbers = append(numbers, m.Inline[0])
	}
	return numbers
}

// tells checks that an error has the case's words.
func (c *conformanceCase) tells(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Error("nothing is wrong")
	}
	for _, want := range c.Says {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// start starts an instance and connects it.
func (c *conformanceCase) start(t *testing.T, made core.Component, seen *records) (*subject, error) {
	o := plugintest.RigOptions{Name: "guest[2]", Index: 2, Count: 3, Run: core.Run{Seed: 7, Synchronous: true}}
	if !c.Denied {
		o.Grants = map[string][]string{"written": {"reward"}}
		if c.Asks {
			o.Grants["written"][0] = trajectory.ShapedReward.String()
		}
	}
	others := c.Others
	o.AskOther = func(ask string, args json.RawMessage, within time.Duration, answer func(json.RawMessage, error)) {
		host := made.(*component).host
		tell := func(reply json.RawMessage, err error) {
			host.Receiver.Control(func(*hostabi.Message) { answer(reply, err) }, hostabi.Message{})
		}
		asks := made.Manifest().Asks
		i := slices.IndexFunc(asks, func(q hostabi.Request) bool { return q.Name == ask })
		args, err := core.CheckArgs(&asks[i], args)
		switch {
		case err != nil:
			tell(nil, err)
		case len(others) == 0 || others[0].Reply == nil && others[0].Fault == 0:
			host.Receiver.After(within, func() { tell(nil, core.ErrLate) })
		default:
			q := others[0]
			if q.Ask != ask || !sameJSON(q.Args, args) {
				t.Errorf("it asks %s(%s), want %s(%s)", ask, args, q.Ask, q.Args)
			}
			others = others[1:]
			tell(q.Reply, q.err())
		}
	}
	r, err := plugintest.TryRig(t, made, o, plugintest.DecodeTable(c.Table))
	if err != nil {
		return nil, err
	}
	shape := trajectory.Shape{Steps: 2, Envs: 3}
	if c.Asks {
		shape.Shaped, shape.Granted = true, trajectory.ShapedReward.String()
	}
	x := &subject{t: t, Rig: r, g: made.(*component), blocks: newBlocks(t, r.Host.Arenas, 4, shape)}
	if c.Asks {
		x.loan, err = x.blocks.arena.Loan()
		must(t, err)
		t.Cleanup(func() { must(t, x.loan.Abort()) })
	}
	for block := range 3 {
		k := float32(block)
		x.all = append(x.all, x.blocks.with(100*k, 100*k+1, 100*k+2, 100*k+10, 100*k+11, 100*k+12))
	}
	t.Cleanup(func() {
		for _, h := range x.all {
			must(t, x.blocks.arena.Release(h))
		}
	})
	if !slices.Contains(c.Unconnected, "out") {
		r.From("out", func(m *hostabi.Message) {
			seen.out, seen.seen = append(seen.out, *m), append(seen.seen, x.first(t, m.Handle))
		})
	}
	take := func(m *hostabi.Message) { seen.note = append(seen.note, *m) }
	switch {
	case c.Room > 0:
		x.full = r.Host.Receiver.Loop().NewReceiver("full")
		x.full.Pause()
		_, err = bus.Connect(r.Host.Signal("note"), bus.NewSlot(x.full, "full", "note", take), bus.Options{Mode: bus.All, Depth: c.Room, Overflow: bus.Block})
	case !slices.Contains(c.Unconnected, "note"):
		r.From("note", take)
	}
	return x, err
}

// first returns the first reward of a block, or the first shaped one of the block of a request.
func (x *subject) first(t *testing.T, h hostabi.Handle) float32 {
	t.Helper()
	if x.loan == (arena.Loan{}) || h != x.loan.Handle() {
		return x.blocks.rewards(h)[0]
	}
	tr := trajectory.Trajectory{Schema: x.blocks.schema, Mem: x.loan.Bytes()}
	return tr.Float32(trajectory.ShapedReward)[0]
}

// sender returns the signal of a message, which for a request carries no claim on its block.
func (c *conformanceCase) sender(x *subject, slot string) *bus.Signal {
	if c.Asks {
		return x.ToOnLoan(slot)
	}
	return x.To(slot)
}

// work gives an instance its messages.
func (c *conformanceCase) work(x *subject, seen *records) error {
	before := len(seen.note)
	for _, m := range c.Messages {
		message := hostabi.Message{T: m.T, Split: m.Split, PolicyVersion: m.PolicyVersion, Kind: m.Kind, Sender: m.Sender, Inline: m.Inline}
		if m.Block != nil {
			message.Handle = x.all[*m.Block]
		}
		if c.Asks {
			message.Handle = x.loan.Handle()
		}
		if err := c.sender(x, m.Slot).Emit(message); err != nil {
			return err
		}
		if err := x.Settle(); err != nil {
			return err
		}
	}
	if x.full != nil {
		x.full.Resume()
		if err := x.Settle(); err != nil {
			return err
		}
	}
	if c.Pause {
		x.g.Pause(x.Host.Receiver.Pause)
	}
	for i := range c.Questions {
		c.Questions[i].ask(x)
	}
	if err := x.Settle(); err != nil {
		return err
	}
	if c.Pause {
		x.g.Resume()
		x.Host.Receiver.Resume()
	}
	if c.Until+int(c.FaultsLeast) == 0 {
		return x.Settle()
	}
	return x.RunUntil(func() bool { return len(seen.note)-before >= c.Until && x.g.faults.Value() >= c.FaultsLeast })
}

// ask asks the component and looks at the answer.
func (q *conformanceQuestion) ask(x *subject) {
	about := x.g.manifest.Requests
	i := slices.IndexFunc(about, func(r hostabi.Request) bool { return r.Name == q.Name })
	args, err := core.CheckArgs(&about[i], q.Args)
	var reply json.RawMessage
	if err == nil {
		x.Host.Ask(context.Background(), q.Name, args, func(r json.RawMessage, e error) { reply, err = r, e }, func() { x.t.Errorf("%s is answered twice", q.Name) })
	}
	switch {
	case q.Error != "" && (err == nil || !strings.Contains(err.Error(), q.Error) || errors.As(err, new(*core.ArgsError)) != q.Wrong):
		x.t.Errorf("%s(%s) = %.60s, %v, want %q, about the arguments: %v", q.Name, q.Args, reply, err, q.Error, q.Wrong)
	case q.Error == "" && (err != nil || !sameJSON(reply, q.Reply)):
		x.t.Errorf("%s(%s) = %.60s, %v, want %.60s", q.Name, q.Args, reply, err, q.Reply)
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// goOn takes a snapshot, where the case is about that, and sends the messages once more.
func (c *conformanceCase) goOn(t *testing.T, l *Modules, x *subject, seen *records) {
	if c.Successor == nil && c.Snapshot == nil {
		return
	}
	state, err := x.g.Snapshot()
	if c.Snapshot != nil {
		for _, want := range c.Snapshot {
			if !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("rl_snapshot: %v, want %q", err, want)
			}
		}
		must(t, c.work(x, seen))
		return
	}
	if err != nil && !errors.Is(err, core.ErrNoSnapshot) {
		t.Fatal(err)
	}
	made, err := l.Component(c.source())
	must(t, err)
	next, err := c.start(t, made, seen)
	must(t, err)
	err = next.g.Restore(state)
	if *c.Successor {
		must(t, err)
		c.Questions = c.QuestionsThen
		must(t, c.work(next, seen))
		return
	}
	var status *statusError
	if !errors.As(err, &status) || status.status != hostabi.StatusVersion {
		t.Errorf("Restore = %v, want the status of another version", err)
	}
	must(t, c.work(x, seen))
}

// compare checks the outputs.
func (c *conformanceCase) compare(t *testing.T, x *subject, seen *records) {
	if c.Out != nil && len(seen.out) != *c.Out {
		t.Errorf("%d messages on out, want %d", len(seen.out), *c.Out)
	}
	if c.Notes != nil && len(seen.note) != *c.Notes {
		t.Errorf("%d messages on note, want %d", len(seen.note), *c.Notes)
	}
	var notes []uint64
	var senders []uint16
	for _, m := range seen.note {
		notes = append(notes, m.Inline[0])
	}
	for _, m := range seen.out {
		senders = append(senders, m.Sender)
	}
	if c.Notes == nil && !slices.Equal(notes, c.Note) {
		t.Errorf("it notes %v, want %v", notes, c.Note)
	}
	if c.Senders != nil && !slices.Equal(senders, c.Senders) {
		t.Errorf("from %v, want %v", senders, c.Senders)
	}
	if c.Seen != nil && !slices.Equal(seen.seen, c.Seen) {
		t.Errorf("the blocks came with %v, want %v", seen.seen, c.Seen)
	}
	if c.Rewards != nil && !slices.Equal(x.blocks.rewards(x.all[0]), c.Rewards) {
		t.Errorf("the block has %v, want %v", x.blocks.rewards(x.all[0]), c.Rewards)
	}
	if c.PassesOn {
		m, want := seen.out[0], c.Messages[0]
		got := conformanceMessage{want.Slot, want.Block, m.T, m.Split, m.PolicyVersion, m.Kind, m.Sender, m.Inline}
		if got != want {
			t.Errorf("passed on as %+v, want %+v", got, want)
		}
	}
	c.compareHost(t, x)
}

// compareHost checks the guest's other calls of the host.
func (c *conformanceCase) compareHost(t *testing.T, x *subject) {
	faults, log := x.g.faults.Value(), x.Log.String()
	switch {
	case c.Faults != nil && faults != *c.Faults, c.Outcome == "runs" && c.Faults == nil && faults != 0, c.Outcome == "fault" && faults == 0:
		t.Errorf("%d faults: %s", faults, log)
	case c.Outcome == "fault":
		c.tells(t, errors.New(log))
	case strings.Contains(log, "did not stop"):
		t.Error(log)
	}
	for _, want := range c.Log {
		if !strings.Contains(log, want) {
			t.Errorf("the log is %s, want %q", log, want)
		}
	}
	samples := map[string]float64{}
	for _, s := range x.Host.Stats.Snapshot() {
		samples[s.Name] = s.Value
	}
	for name, want := range c.Metrics {
		if got, ok := samples[name]; !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if c.Stops != nil && !slices.Equal(x.Stops, c.Stops) {
		t.Errorf("stops for %v, want %v", x.Stops, c.Stops)
	}
	if c.Slots != nil {
		var slots []string
		for _, p := range x.g.Manifest().Slots {
			slots = append(slots, p.Name)
		}
		if !slices.Equal(slots, c.Slots) {
			t.Errorf("slots %v, want %v", slots, c.Slots)
		}
	}
}
