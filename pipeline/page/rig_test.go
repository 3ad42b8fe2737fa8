package page_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/page"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/evaluation"
)

// lab has a run that was trained for a moment.
type lab struct {
	*testing.T
	parts *graph.Parts
	dir   string
	run   *runs.Run
}

// head begins the pipelines of these tests: brief trainings that end with a checkpoint, and save others before it.
const head = `
rlhost = 1
[run]
name = "played"
stop = { env_steps = 8192 }
evaluation = { episodes = 1 }
checkpoint = { every = "1us", keep = 9 }
`

func train(t *testing.T, text string, sets ...string) *lab {
	t.Helper()
	l := &lab{T: t, dir: t.TempDir()}
	sets = append([]string{"run.dir=" + l.dir, "component.runner.log=[]"}, sets...)
	if _, err := rlhost.Train(t.Context(), rlhost.Options{Text: head + text, Set: sets, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	parts, engines := builtin.New(builtin.Options{})
	t.Cleanup(func() {
		if err := engines.Close(); err != nil {
			t.Error(err)
		}
	})
	l.parts = parts
	var err error
	if l.run, err = runs.Open(l.dir, "played"); err != nil {
		t.Fatal(err)
	}
	return l
}

// page returns the run's page with so many versions.
func (l *lab) page(versions int) ([]byte, error) {
	c, err := l.run.Load(runs.Latest)
	if err != nil {
		l.Fatal(err)
	}
	x, err := session.Page(l.Context(), l.run, &c, l.parts, "", versions)
	return x.File, err
}

// file writes the run's page, and returns its path.
func (l *lab) file(versions int) string {
	l.Helper()
	html, err := l.page(versions)
	if err != nil {
		l.Fatal(err)
	}
	path := filepath.Join(l.TempDir(), "page.html")
	if err := os.WriteFile(path, html, 0o644); err != nil {
		l.Fatal(err)
	}
	return path
}

// trace plays a game of a page from its first episode on: a line for each step, with the actions, the rewards, whether the episode is over, and a
// hash of all observations.
const trace = `(game, steps) => {
  const lines = [], bytes = new DataView(new ArrayBuffer(4));
  Object.assign(game, { episode: -1, person: null });
  game.begin();
  for (let k = 0; k < steps; k++) {
    const did = game.step();
    let hash = 2166136261;
    for (const t of game.env.of("observation")) game.env.each(t, (e, a, i) => {
      bytes.setFloat32(0, game.env.get(t, game.env.t, e, a, i), true);
      for (let b = 0; b < 4; b++) hash = Math.imul(hash ^ bytes.getUint8(b), 16777619) >>> 0;
    });
    lines.push([JSON.stringify(did), JSON.stringify(game.rewards), game.over, hash].join(" "));
  }
  return lines.join("\n");
}`

// host plays the newest policy in the environment as trace does, with the program's own runtime and inference.
func (l *lab) host(steps int) string {
	l.Helper()
	src, err := l.run.Pipeline()
	if err != nil {
		l.Fatal(err)
	}
	g, problems := graph.Parse("played.toml", src, graph.ParseOptions{Parts: l.parts, Expanded: true})
	if g == nil {
		l.Fatal(problems)
	}
	plugin, err := l.parts.Load(l.Context(), "played", g.Envs[0].Table, g.Dir)
	if err != nil {
		l.Fatal(err)
	}
	defer plugin.Close()
	spec := plugin.Spec()
	mode := hostabi.SameStep
	if spec.Autoreset&hostabi.Disabled != 0 {
		mode = hostabi.Disabled
	}
	d, err := env.NewDriver(plugin, env.DriverOptions{Options: env.Options{Name: "played", Envs: 1, Autoreset: mode}})
	if err != nil {
		l.Fatal(err)
	}
	defer d.Close()
	h := &hosted{T: l.T, d: d}
	for range spec.Agents() {
		seat, err := rlhost.Load(l.Context(), "played", 1, rlhost.Options{Runs: l.dir, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			l.Fatal(err)
		}
		defer seat.Close()
		h.seats = append(h.seats, seat)
	}
	h.begin()
	var lines []string
	for range steps {
		if h.over {
			h.begin()
		}
		lines = append(lines, h.step())
	}
	return strings.Join(lines, "\n")
}

// hosted is an environment that seats play.
type hosted struct {
	*testing.T
	d       *env.Driver
	seats   []*rlhost.Policy
	rewards []float32
	episode uint64
	over    bool
}

func (h *hosted) begin() {
	h.episode++
	h.over, h.rewards = false, make([]float32, len(h.seats))
	if err := h.d.Reset(nil, []uint64{h.episode}); err != nil {
		h.Fatal(err)
	}
	for _, s := range h.seats {
		s.Begin()
	}
}

func (h *hosted) step() string {
	tr, row := h.d.Acting()
	acts := tr.Acts(row)
	did := make([]string, len(h.seats))
	for agent, s := range h.seats {
		if did[agent] = "null"; acts != nil && acts[agent] == 0 {
			continue
		}
		actions, err := s.Act(h.observation(agent))
		if err != nil {
			h.Fatal(err)
		}
		m := h.d.Actions()[0]
		binary.LittleEndian.PutUint32(m.Data[agent*m.StrideRow:], uint32(actions[0].I32[0]))
		did[agent] = fmt.Sprintf("[%d]", actions[0].I32[0])
	}
	if _, err := h.d.Step(); err != nil {
		h.Fatal(err)
	}
	copy(h.rewards, h.d.Reward())
	h.over = true
	for agent := range h.seats {
		h.over = h.over && h.d.Terminated()[agent]|h.d.Truncated()[agent] != 0
	}
	hash := fnv.New32a()
	for _, m := range h.d.Observations() {
		for agent := range h.seats {
			for i := range m.Elems {
				hash.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(number(m, agent, i))))
			}
		}
	}
	rewards := make([]string, len(h.rewards))
	for i, r := range h.rewards {
		rewards[i] = fmt.Sprint(r)
	}
	return fmt.Sprintf("[%s] [%s] %t %d", strings.Join(did, ","), strings.Join(rewards, ","), h.over, hash.Sum32())
}

// number is an element of an observation.
func number(m trajectory.Matrix, row, elem int) float32 {
	bits := m.Bits(row, elem)
	if m.DType == hostabi.F32 {
		return math.Float32frombits(uint32(bits))
	}
	return float32(bits)
}

func (h *hosted) observation(agent int) (o evaluation.Observation) {
	for _, m := range h.d.Observations() {
		var e evaluation.Elements
		for i := range m.Elems {
			if m.DType == hostabi.F32 {
				e.F32 = append(e.F32, number(m, agent, i))
			} else {
				e.U8 = append(e.U8, uint8(m.Bits(agent, i)))
			}
		}
		o.Tensors = append(o.Tensors, e)
	}
	for _, m := range h.d.Masks() {
		var mask []byte
		for i := range m.Elems {
			mask = append(mask, byte(m.Bits(agent, i)))
		}
		o.Masks = append(o.Masks, mask)
	}
	o.Reward = h.rewards[agent]
	return o
}

// node runs a script behind the page's own in Node, with the page's data.
func node(t *testing.T, html []byte, script string) string {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("Node is missing: apt-get install nodejs")
	}
	_, data, _ := bytes.Cut(html, []byte(`id="data">`))
	data, _, _ = bytes.Cut(data, []byte("</script>"))
	c := exec.Command("node", "--input-type=module", "-")
	c.Stdin = strings.NewReader(fmt.Sprintf(`import { gunzipSync } from "node:zlib";
%s
const data = %s, unpacked = (text) => gunzipSync(Buffer.from(text, "base64"));
%s`, page.Engine, data, script))
	var out, complaints bytes.Buffer
	c.Stdout, c.Stderr = &out, &complaints
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s", err, complaints.String())
	}
	return strings.TrimSpace(out.String())
}

// differs returns the first lines in which two texts differ.
func differs(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d: %s, want %s", i, x[i], y[i])
		}
	}
	if len(x) != len(y) {
		return fmt.Sprintf("%d lines, want %d", len(x), len(y))
	}
	return ""
}
