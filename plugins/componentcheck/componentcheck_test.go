package componentcheck

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/recording"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/examples/plugins/chooser-go/chooser"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/author"
	"github.com/rlhost/rlhost/plugins/envcheck"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wasm"
	wasmcomponent "github.com/rlhost/rlhost/plugins/wasm/component"
	sdk "github.com/rlhost/rlhost/sdk/component"
)

// module returns the maker of components of a module.
func module(t *testing.T, path string) func() (component.Component, error) {
	t.Helper()
	r, err := wasm.New(wasm.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	l := wasmcomponent.NewModules(r)
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), r.Close()); err != nil {
			t.Error(err)
		}
	})
	return func() (component.Component, error) {
		return l.Component(wasmcomponent.Source{Source: env.Source{Name: "guest", Use: path, Grants: []string{"log", "metric"}}})
	}
}

// verdicts returns the checks that are not ok.
func verdicts(results []envcheck.Result) (list []string) {
	for _, r := range results {
		if r.Verdict != envcheck.OK {
			list = append(list, r.ID+" "+string(r.Verdict)+": "+r.Detail)
		}
	}
	return list
}

// The examples pass, in every language that is here.
func TestRun_TheExamplesPass(t *testing.T) {
	for name, table := range map[string]map[string]any{"shaper": nil, "episodes": nil, "curriculum": nil, "chooser": {"of": int64(4)}, "opponent": {"policy": "rules"}} {
		for guest, path := range testkit.Guests(t, name, t.TempDir()) {
			t.Run(guest, func(t *testing.T) {
				results := Run(Options{Make: module(t, path), Configure: plugintest.DecodeTable(table)})
				if bad := verdicts(results); len(bad) > 0 || len(results) != len(checks()) {
					t.Errorf("%d checks, %v", len(results), bad)
				}
			})
		}
	}
}

// wrong is a component with a mistake.
type wrong struct {
	sdk.Stateless
	out  sdk.Signal
	host sdk.Host
	do   func(c *wrong, m *sdk.Message)
	seen uint64
}

func (c *wrong) Manifest() sdk.Manifest {
	return sdk.Manifest{Signals: []sdk.Port{{Name: "out", Payload: "trajectory"}, {Name: "answers", Payload: "reset_params"}},
		Slots: []sdk.Port{{Name: "in", Payload: "trajectory"}, {Name: "resets", Payload: "reset_request"}}}
}
func (c *wrong) Configure(decode func(any) error) error { return decode(&struct{}{}) }
func (c *wrong) Start(h sdk.Host) error {
	c.host, c.out = h, h.Signal("out")
	h.Slot("in", func(m *sdk.Message) { c.do(c, m) })
	h.Slot("resets", func(m *sdk.Message) {
		if c.do != nil && c.seen != 1<<63 {
			_, _ = h.Signal("answers").Emit(*m)
		}
	})
	return nil
}

func TestRun_FindsMistakes(t *testing.T) {
	var calls uint64
	for want, do := range map[string]func(c *wrong, m *sdk.Message){
		"C02": func(c *wrong, m *sdk.Message) { c.host.Fail(errors.New("words of a component")) },
		"C03": func(c *wrong, m *sdk.Message) { calls++; m.Inline[0] = calls; _, _ = c.out.Emit(*m) },
		"C04": func(c *wrong, m *sdk.Message) { c.seen++; m.Inline[0] = c.seen; _, _ = c.out.Emit(*m) },
		"C05": func(c *wrong, m *sdk.Message) { _, _ = m.Block.Lease() },
		"C06": func(c *wrong, m *sdk.Message) { c.seen = 1 << 63 },
	} {
		results := Run(Options{Make: func() (component.Component, error) {
			return author.Kind(func() sdk.Component { return &wrong{do: do} })(), nil
		}, Configure: plugintest.DecodeTable(nil)})
		if bad := verdicts(results); !slices.ContainsFunc(bad, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("%s: found %v", want, bad)
		}
	}
}

// A recording is played instead of made-up messages.
func TestRun_PlaysARecording(t *testing.T) {
	sample, err := sampleFor(nil, "")
	if err != nil {
		t.Fatal(err)
	}
	set := arena.NewSet()
	a, err := set.Add(arena.Config{Name: "blocks", Blocks: 1, BlockBytes: sample.Bytes, Schema: sample})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	w, err := recording.NewWriter(&file, 1<<20)
	for i := range 3 {
		err = errors.Join(err, w.Write("rollout.trajectories", "trajectory", &hostabi.Message{T: uint32(i)}, blockOf(sample, i), a))
	}
	if err := errors.Join(err, set.Close()); err != nil {
		t.Fatal(err)
	}
	messages, err := Read(&file)
	if err != nil || len(messages) != 3 {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	results := Run(Options{Make: func() (component.Component, error) { return author.Kind(chooser.New)(), nil },
		Configure: plugintest.DecodeTable(map[string]any{"of": int64(2)}), Messages: messages})
	if d := results[1].Detail; !strings.HasPrefix(d, "3 messages, 2 sent") {
		t.Errorf("C02 says %q", d)
	}
	if bad := verdicts(results); len(bad) != 1 || !strings.HasPrefix(bad[0], "C05 warn: 1 blocks are leased") {
		t.Errorf("found %v, want the block that is leased behind the last of 3", bad)
	}
}

func TestExplain_HasAPageForEveryCheck(t *testing.T) {
	for _, k := range checks() {
		page, ok := Explain(strings.ToLower(k.id))
		title, _, _ := strings.Cut(page, "\n")
		if !ok || title != k.id+" "+k.title || !strings.Contains(page, "Fix: ") {
			t.Errorf("page of %s begins with %q", k.id, title)
		}
	}
}

// Recorded requests are played with their blocks on loan.
func TestRun_PlaysRecordedRequests(t *testing.T) {
	sample, err := sampleFor(nil, "")
	if err != nil {
		t.Fatal(err)
	}
	set := arena.NewSet()
	a, err := set.Add(arena.Config{Name: "blocks", Blocks: 1, BlockBytes: sample.Bytes, Schema: sample})
	if err != nil {
		t.Fatal(err)
	}
	loan, err := a.Loan()
	if err != nil {
		t.Fatal(err)
	}
	copy(loan.Bytes(), blockOf(sample, 0))
	path := filepath.Join(t.TempDir(), "requests.rec")
	f, err := recording.Create(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	for row := range 3 {
		m := trajectory.ActRequest{Block: loan.Handle(), T: row}.Message()
		f.Keep("rollout.obs_ready", component.PayloadRequest, true, &m, set)
	}
	m := trajectory.ActRequest{Block: loan.Handle(), T: 3}.Message()
	if err := loan.Abort(); err != nil {
		t.Fatal(err)
	}
	f.Keep("rollout.obs_ready", component.PayloadRequest, true, &m, set) // too late: the loan is over
	if err := errors.Join(f.Close(), set.Close()); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	messages, err := Read(file)
	if err != nil || len(messages) != 3 || !slices.Equal(messages[2].Block, blockOf(sample, 0)) {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	results := Run(Options{Make: module(t, "../../examples/plugins/opponent-c/opponent.wasm"),
		Configure: plugintest.DecodeTable(map[string]any{"policy": "rules"}), Messages: messages})
	if bad := verdicts(results); len(bad) > 0 || results[5].Detail != "3 requests" {
		t.Errorf("found %v; C06 says %q", bad, results[5].Detail)
	}
}

// Made-up blocks have the columns that the component declares, of the types that it wants.
func TestSample_HasTheManifestsColumns(t *testing.T) {
	looks := []hostabi.ManifestColumn{{Name: "obs", DType: hostabi.U8}, {Name: "obs/1"}, {Name: "action", DType: hostabi.F32}, {Name: "active"},
		{Name: "reset_param/1"}, {Name: "info"}, {Name: "shaped_reward"}, {Name: "of_its_own"}}
	s, err := sampleFor(looks, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range looks[:len(looks)-1] {
		column, _ := trajectory.ParseColumn(c.Name)
		l, ok := s.Layout(column)
		if !ok || c.DType != 0 && l.DType != c.DType {
			t.Errorf("%s: %+v", c.Name, l)
		}
	}
	blockOf(s, 1)
}

// A module that writes into a column granted for reading alone fails C07.
func TestRun_FindsWritesIntoWhatIsRead(t *testing.T) {
	for trespass, want := range map[int64]string{0: "C07 ok: columns to read are as they came", 1: "C07 FAIL: it writes into reward, where nobody but it sees that"} {
		results := Run(Options{Make: module(t, "../../cmd/rlhost/testdata/guests/agreed.wasm"), Configure: plugintest.DecodeTable(map[string]any{"trespass": trespass, "schema": int64(0)})})
		last := results[6]
		if got := last.ID + " " + string(last.Verdict) + ": " + last.Detail; !strings.EqualFold(got, want) {
			t.Errorf("trespass = %d: %s, want %s", trespass, got, want)
		}
	}
}

// A component that plays a policy writes the actions that it is asked for and no others: C08 names the first that is wrong.
func TestRun_LooksAtTheActions(t *testing.T) {
	const path = "../../cmd/rlhost/testdata/guests/scribbles.wasm"
	for _, c := range []struct {
		fault  int64
		policy string
		want   string
	}{
		{0, "rules", "C08 ok: 14 actions"},
		{0, "", "C08 ok: 28 actions"},
		{1, "", "C08 FAIL: request 2: it does not write action of row 1, environment 0, agent 1, and 12 of 28 actions in all"},
		{1, "rules", "C08 FAIL: request 2: it does not write action of row 1, environment 1, agent 1, and 6 of 14 actions in all"},
		{2, "", "C08 FAIL: request 1: it writes action of row 0, environment 0, agent 1, which is not asked for"},
		{3, "rules", "C08 FAIL: request 1: it writes action of row 0, environment 0, agent 0, which is not asked for"},
		{4, "", "C08 FAIL: request 8: it writes action of row 15, environment 0, agent 1, which is not asked for"},
		{5, "", "C08 FAIL: request 1: it writes action of row 1, environment 0, agent 0, which is not asked for"},
	} {
		table := map[string]any{"fault": c.fault}
		if c.policy != "" {
			table["policy"] = c.policy
		}
		results := Run(Options{Make: module(t, path), Configure: plugintest.DecodeTable(table)})
		last := results[len(results)-1]
		if got := last.ID + " " + string(last.Verdict) + ": " + last.Detail; !strings.EqualFold(got, c.want) {
			t.Errorf("fault %d, policy %q: %s, want %s", c.fault, c.policy, got, c.want)
		}
		if bad := verdicts(results[:7]); len(bad) > 0 {
			t.Errorf("fault %d: %v", c.fault, bad)
		}
	}
}

// ported is a component with a port of some schema.
type ported struct {
	wrong
	schema uint64
}

func (c *ported) Manifest() sdk.Manifest {
	return sdk.Manifest{Slots: []sdk.Port{{Name: "in", Payload: "reward_request", Schema: c.schema}, {Name: "own", Payload: "mine", Schema: 7}}}
}

func (c *ported) Start(h sdk.Host) error {
	h.Slot("in", func(*sdk.Message) {})
	h.Slot("own", func(*sdk.Message) {})
	return nil
}

// The schema of a payload that the host knows is compared before anything is wired.
func TestRun_ComparesSchemasOfKnownPayloads(t *testing.T) {
	for schema, want := range map[uint64]string{
		0x1234:             "C01 FAIL: slot in: the schema of reward_request is 4f5a92335682cac9, it says 0000000000001234: write that one, or 0",
		0x4f5a92335682cac9: "", 0: "",
	} {
		make := func() (component.Component, error) {
			return author.Kind(func() sdk.Component { return &ported{schema: schema} })(), nil
		}
		first := Run(Options{Make: make, Configure: plugintest.DecodeTable(nil)})[0]
		got := first.ID + " " + string(first.Verdict) + ": " + first.Detail
		if first.Verdict == envcheck.OK {
			got = ""
		}
		if !strings.EqualFold(got, want) {
			t.Errorf("schema %x: %s, want %s", schema, got, want)
		}
	}
}
