package wasm

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

const conformance = "../../hostabi/conformance/"

// conformanceCase is an entry of cases.json; its README says what the fields mean.
type conformanceCase struct {
	Name    string            `json:"name"`
	Rule    string            `json:"rule"`
	Outcome string            `json:"outcome"`
	Says    []string          `json:"says"`
	Feature string            `json:"feature"`
	NotYet  bool              `json:"not_yet"`
	Modes   []string          `json:"modes"`
	Trace   *bool             `json:"trace"`
	Grants  []string          `json:"grants"`
	Args    map[string]string `json:"args"`
	Agents  int               `json:"agents"`
	Render  *struct {
		Width, Height, Cameras int
	} `json:"render"`
}

// conformanceTrace is what two environments do in one mode: by row, then by environment.
type conformanceTrace struct {
	Seeds                 []uint64       `json:"seeds"`
	Actions               [][]int32      `json:"actions"`
	Obs                   [][][2]float32 `json:"obs"`
	Reward                [][]float32    `json:"reward"`
	Terminated, Truncated [][]uint8
	Final                 [][]*[2]float32 `json:"final"`
}

// of returns the trace of environments each of whose agents does and sees the same.
func (c conformanceTrace) of(agents int) conformanceTrace {
	c.Actions, c.Obs, c.Reward = repeat(c.Actions, agents), repeat(c.Obs, agents), repeat(c.Reward, agents)
	c.Terminated, c.Truncated, c.Final = repeat(c.Terminated, agents), repeat(c.Truncated, agents), repeat(c.Final, agents)
	return c
}

// repeat returns the rows with each element n times.
func repeat[E any](rows [][]E, n int) (list [][]E) {
	for _, row := range rows {
		var wide []E
		for _, e := range row {
			wide = append(wide, slices.Repeat([]E{e}, n)...)
		}
		list = append(list, wide)
	}
	return list
}

func readJSON(t *testing.T, name string, to any) {
	t.Helper()
	b, err := os.ReadFile(conformance + name)
	must(t, err)
	must(t, json.Unmarshal(b, to))
}

// The host handles every module of the conformance set as the set says.
func TestConformance_HoldsForThisHost(t *testing.T) {
	var cases []conformanceCase
	traces := map[string]conformanceTrace{}
	readJSON(t, "cases.json", &cases)
	readJSON(t, "traces.json", &traces)
	r := newRuntime(t)
	sources, err := filepath.Glob(conformance + "*.wat")
	must(t, err)
	if len(sources) != len(cases) {
		t.Errorf("%d cases, %d sources", len(cases), len(sources))
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { c.run(t, r, traces) })
	}
}

func (c *conformanceCase) run(t *testing.T, r *Runtime, traces map[string]conformanceTrace) {
	path := conformance + c.Name + ".wasm"
	p, err := r.Load(t.Context(), path, nil, env.Source{Grants: c.Grants, Args: c.Args})
	refused := c.Outcome == "refused" || c.Feature != "" && !strings.Contains(hostabi.HostFeatures.String(), c.Feature)
	if refused {
		c.tells(t, err)
		if notYet := c.NotYet || c.Feature != ""; errors.Is(err, hostabi.ErrNotYet) != notYet {
			t.Errorf("%v: refused as what is not run yet: %v, want %v", err, !notYet, notYet)
		}
		return
	}
	must(t, err)
	t.Cleanup(func() { must(t, p.Close()) })
	modes := c.Modes
	if modes == nil {
		modes = []string{"same_step"}
	}
	for _, mode := range modes {
		trace, own := traces[c.Name]
		if !own {
			trace = traces[mode].of(max(c.Agents, 1))
		}
		c.play(t, p, mode, trace)
	}
	if c.Outcome == "runs" {
		c.probe(t, p)
	}
}

// tells checks that an error has the case's words.
func (c *conformanceCase) tells(t *testing.T, err error) {
	t.Helper()
	for _, want := range c.Says {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err == nil {
		t.Error("it is accepted")
	}
}

// play steps two environments as the trace says and compares what they write.
func (c *conformanceCase) play(t *testing.T, p env.Plugin, mode string, want conformanceTrace) {
	for _, soa := range []bool{false, true} {
		if spec := p.Spec(); soa && spec.Caps == 0 {
			return
		}
		d, err := env.NewDriver(p, env.DriverOptions{Options: env.Options{Name: c.Name, Envs: 2, Autoreset: modeOf(mode)}, Rows: 4, SoA: soa})
		if err == nil {
			err = c.steps(t, p, d, mode, &want)
			must(t, d.Close())
		}
		if c.Outcome == "fault" {
			c.tells(t, err)
		} else if err != nil {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

func modeOf(name string) hostabi.Autoreset {
	for _, m := range []hostabi.Autoreset{hostabi.NextStep, hostabi.SameStep, hostabi.Disabled} {
		if m.String() == name {
			return m
		}
	}
	return 0
}

func (c *conformanceCase) steps(t *testing.T, p env.Plugin, d *env.Driver, mode string, want *conformanceTrace) error {
	c.giveParams(d)
	if err := d.Reset(nil, want.Seeds); err != nil {
		return err
	}
	c.compareObs(t, d, want.Obs[0], mode+" at first")
	for step, actions := range want.Actions {
		act(d, actions)
		if err := d.Bind(); err != nil { // allowed between any two steps
			return err
		}
		if strings.HasPrefix(c.Name, "action-outside") {
			c.outside(t, d, mode == "next_step" && step > 0 && want.Terminated[step-1][1]|want.Truncated[step-1][1] != 0)
		}
		if _, err := d.Step(); err != nil {
			return err
		}
		again := make([]uint8, 2)
		for k := range again {
			again[k] = d.Terminated()[k] | d.Truncated()[k]
		}
		over := slices.Contains(again, 1)
		c.compare(t, d, mode, want, step)
		if c.Name == "mask-elements" {
			masked(t, d, mode, over && mode != "same_step")
		}
		if over && strings.HasSuffix(c.Name, "waiting") {
			if err := c.waits(t, p, d, mode); err != nil {
				return err
			}
		}
		if over && mode == "disabled" {
			if err := d.Reset(again, nil); err != nil {
				return err
			}
		}
		c.compareObs(t, d, want.Obs[step+1], fmt.Sprintf("%s step %d", mode, step))
	}
	return nil
}

func (c *conformanceCase) compare(t *testing.T, d *env.Driver, mode string, want *conformanceTrace, step int) {
	if !slices.Equal(d.Reward(), want.Reward[step]) || !bytes.Equal(d.Terminated(), want.Terminated[step]) || !bytes.Equal(d.Truncated(), want.Truncated[step]) {
		t.Errorf("%s step %d: %v %v %v, want %v %v %v", mode, step, d.Reward(), d.Terminated(), d.Truncated(),
			want.Reward[step], want.Terminated[step], want.Truncated[step])
	}
	finals := d.Observed(trajectory.Final)
	for k, final := range want.Final[step] {
		if final != nil {
			c.compareRow(t, d, finals, k, *final, fmt.Sprintf("last observation of %s step %d", mode, step))
		}
	}
}

func (c *conformanceCase) compareObs(t *testing.T, d *env.Driver, want [][2]float32, where string) {
	t.Helper()
	for k := range want {
		c.compareRow(t, d, d.Observations(), k, want[k], where)
	}
}

// compareRow compares an agent's observations: every observation of its group begins with the trace's numbers, as many as it has.
func (c *conformanceCase) compareRow(t *testing.T, d *env.Driver, observations []trajectory.Matrix, row int, want [2]float32, where string) {
	t.Helper()
	if c.Trace != nil && !*c.Trace {
		return
	}
	for i, m := range observations {
		if !d.Schema().Holds(trajectory.Obs.At(i), row) {
			continue
		}
		for elem := range min(m.Elems, 2) {
			if got := m.Value(row, elem); got != float64(want[elem]) {
				t.Errorf("%s: row %d has %v in element %d of observation %d, want %v", where, row, got, elem, i, want[elem])
			}
		}
	}
}

// probe does what only some cases are about.
func (c *conformanceCase) probe(t *testing.T, p env.Plugin) {
	var metrics []string
	d, err := env.NewDriver(p, env.DriverOptions{Rows: 4, Options: env.Options{Name: c.Name, Envs: 2,
		Metric: func(m env.Metric) {
			metrics = append(metrics, fmt.Sprint(m.Env, " ", m.Name, " ", m.Value, " ", uint32(m.Gather)))
		}}})
	must(t, err)
	defer func() { must(t, d.Close()) }()
	c.giveParams(d)
	must(t, d.Reset(nil, []uint64{11, 22}))
	act(d, make([]int32, 2*max(c.Agents, 1)))
	_, err = d.Step()
	must(t, err)
	switch c.Name {
	case "render", "render-short", "render-not-text", "render-grows":
		c.pictures(t, d)
	case "save", "save-other-version", "save-wrong-length", "save-too-long", "save-headless":
		c.states(t, d)
	case "box", "box-elements", "box-half", "box-open":
		playRaw(t, d)
	case "discount":
		if got := d.Result(trajectory.Discount).Float32(); !slices.Equal(got, []float32{0.5, 0.5}) {
			t.Errorf("the discounts are %v, want 0.5", got)
		}
	case "reset-info":
		tr, now := d.Whole()
		if got := tr.Row(trajectory.ResetInfo, now-1).Float32(); !slices.Equal(got, []float32{3, 6}) {
			t.Errorf("the infos of the episodes that begin with the first reset are %v, want 3 and 6", got)
		}
	case "random":
		drawn(t, p)
	case "figures":
		if spec := p.Spec(); spec.Name != "conformance@1" || spec.Rewards.Threshold == nil || *spec.Rewards.Threshold != 0.5 {
			t.Errorf("%s is solved at %v, want conformance@1 at 0.5", spec.Name, spec.Rewards.Threshold)
		}
	case "minimal":
		if spec := p.Spec(); spec.Rewards.Threshold != nil {
			t.Errorf("it is solved at %v, want no number", *spec.Rewards.Threshold)
		}
	case "dt":
		if spec := p.Spec(); spec.DT != 0.01 {
			t.Errorf("a step takes %v seconds, want 0.01", spec.DT)
		}
	case "keys":
		if spec := p.Spec(); spec.Keys != "left=0\nright=1" {
			t.Errorf("the keys are %q, want left=0 and right=1", spec.Keys)
		}
	case "agent-names":
		if spec := p.Spec(); spec.Groups[0].AgentName(0) != "red" || spec.Groups[0].AgentName(1) != "blue" {
			t.Errorf("the agents are called %q", spec.Groups[0].AgentNames)
		}
	case "info-many":
		figures := d.Figures()
		if last := figures[len(figures)-1]; len(figures) != trajectory.MaxFigures || last.Name != "seen/255" || d.Result(last.Column).Value(1, last.Elem) != 255 {
			t.Errorf("%d figures, the last is %+v", len(figures), last)
		}
	case "info-end":
		for range 2 {
			act(d, make([]int32, 2))
			_, err := d.Step()
			must(t, err)
		}
		tr, now := d.Whole()
		if got := tr.Row(trajectory.Info, now-1).Float32(); !slices.Equal(got, []float32{3, 3}) {
			t.Errorf("the infos of the step that ends an episode are %v, want 3", got)
		}
	case "metric-names":
		names := map[string]bool{}
		for _, m := range metrics {
			names[strings.Fields(m)[1]] = true
		}
		if len(names) != 256 || !names[strings.Repeat("a", 128)] || names[strings.Repeat("a", 129)] || names["PP"] {
			t.Errorf("%d names, want 256: the first has 128 bytes, and the last is PO", len(names))
		}
	case "metric-env":
		want := []string{}
		for k := range 2 {
			for i, name := range []string{"last", "sum_", "mean", "max_", "min_"} {
				want = append(want, fmt.Sprint(k, " ", name, " ", 10*k, " ", []int{0, 0x2000, 0x4000, 0x8000, 0x10000}[i]))
			}
		}
		if !slices.Equal(metrics, want) {
			t.Errorf("metrics %q, want %q", metrics, want)
		}
	}
}

// drawn compares the random bytes of the first environment beside another and alone, which shows that each has its own stream.
func drawn(t *testing.T, p env.Plugin) {
	t.Helper()
	var seen [2][]float32
	for k := range seen {
		d, err := env.NewDriver(p, env.DriverOptions{Rows: 4, Options: env.Options{Name: "random", Envs: 2 - k}})
		must(t, err)
		must(t, d.Reset(nil, []uint64{11, 22}[:2-k]))
		for range 5 {
			act(d, make([]int32, 2-k))
			_, err := d.Step()
			must(t, err)
			seen[k] = append(seen[k], d.Result(trajectory.Info).Float32()[0])
		}
		must(t, d.Close())
	}
	if !slices.Equal(seen[0], seen[1]) || len(slices.Compact(seen[0])) != 5 {
		t.Errorf("the first environment draws %v, alone %v", seen[0], seen[1])
	}
}

// pictures asks for one of each mode and camera.
func (c *conformanceCase) pictures(t *testing.T, d *env.Driver) {
	e := d.Env.(env.Renderer)
	if c.Render == nil {
		mode := d.Schema().Spec.Render.Modes
		_, err := e.Render(0, mode, 0, nil)
		c.tells(t, err)
		return
	}
	for camera := range c.Render.Cameras {
		for mode, want := range map[hostabi.RenderMode][]byte{
			hostabi.RenderText: []byte("age 1"),
			hostabi.RenderRGB:  bytes.Repeat([]byte{byte(1 + camera)}, 3*c.Render.Width*c.Render.Height),
			hostabi.RenderRGBA: bytes.Repeat([]byte{byte(1 + camera)}, 4*c.Render.Width*c.Render.Height),
		} {
			if got, err := e.Render(1, mode, camera, []byte("seen: ")); err != nil || string(got) != "seen: "+string(want) {
				t.Errorf("camera %d, mode %d: %q, %v, want %q", camera, mode, got, err, want)
			}
		}
	}
	for _, wrong := range [][3]int{{2, 1, 0}, {0, 8, 0}, {0, 3, 0}, {0, 1, 256}} {
		if _, err := e.Render(wrong[0], hostabi.RenderMode(wrong[1]), wrong[2], nil); !errors.Is(err, env.ErrUnsupported) {
			t.Errorf("render %v = %v", wrong, err)
		}
	}
	if _, err := e.Render(0, hostabi.RenderRGB, 2, nil); err == nil {
		t.Error("the guest has two cameras, and shows the third")
	}
}

// states moves the state of one environment to the other.
func (c *conformanceCase) states(t *testing.T, d *env.Driver) {
	e := d.Env.(env.Stater)
	state, err := e.SaveEnv(0, nil)
	if c.Name != "save" {
		c.tells(t, err)
		return
	}
	must(t, err)
	must(t, e.LoadEnv(1, state))
	if moved, err := e.SaveEnv(1, nil); err != nil || !bytes.Equal(moved, state) {
		t.Errorf("the moved state is %v, %v, want %v", moved, err, state)
	}
	other := bytes.Clone(state)
	other[0]++
	if err := e.LoadEnv(1, other); !errors.Is(err, env.ErrStateVersion) {
		t.Errorf("a state of another version = %v", err)
	}
	if now, err := e.SaveEnv(1, nil); err != nil || !bytes.Equal(now, state) {
		t.Errorf("the state that was refused has changed the environment to %v, %v", now, err)
	}
}

// The committed modules, of environments and of components, were assembled from their present text: assembled.txt has the hashes of both.
func TestConformance_ModulesAreFresh(t *testing.T) {
	for _, folder := range []string{conformance, conformance + "component/"} {
		if was, now := contentOf(t, folder+"assembled.txt"), assembled(t, folder); was != now {
			t.Errorf("%sassembled.txt says\n%swhich is now\n%srun python %sassemble.py, after make tools", folder, was, now, conformance)
		}
	}
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}

// assembled returns what assembled.txt of a folder is to say.
func assembled(t *testing.T, folder string) (record string) {
	t.Helper()
	sources, err := filepath.Glob(folder + "*.wat")
	must(t, err)
	if len(sources) < 50 {
		t.Fatalf("%d modules in %s", len(sources), folder)
	}
	include := regexp.MustCompile(`(?m)^;; include (\w+)$`)
	var text func(path string) string
	text = func(path string) string {
		return include.ReplaceAllStringFunc(contentOf(t, path), func(line string) string {
			return text(folder + "parts/" + include.FindStringSubmatch(line)[1] + ".wat")
		})
	}
	for _, source := range sources {
		name := strings.TrimSuffix(filepath.Base(source), ".wat")
		record += fmt.Sprintf("%s %x %x\n", name, sha256.Sum256([]byte(text(source))), sha256.Sum256([]byte(contentOf(t, folder+name+".wasm"))))
	}
	return record
}
