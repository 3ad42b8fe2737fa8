package component

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wasm"
)

// account is what became of an attack, by stage.
type account struct {
	said map[stage]string
	sent []hostabi.Message
}

// holdings are the things of a process that could leak.
type holdings struct{ goroutines, files, arenas, mappings int }

func held(t testing.TB) (h holdings) {
	t.Helper()
	h.goroutines = runtime.NumGoroutine()
	files, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	h.files = len(files)
	maps, err := os.Open("/proc/self/maps")
	must(t, err)
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); h.mappings++ {
		if strings.Contains(lines.Text(), "memfd:") {
			h.arenas++
		}
	}
	return h
}

// leaked says what there is more of than before.
func (h holdings) leaked(since holdings) string {
	if h.goroutines > since.goroutines || h.files > since.files || h.arenas > since.arenas {
		return fmt.Sprintf("before %+v, after %+v", since, h)
	}
	return ""
}

// leak is a leak, for messages.
type leak struct{ text string }

func (l *leak) String() string { return l.text }

// TestHostile_ComponentsHarmNobody lets each attack live as long as its host lets it, twice. Nothing may leak, the host's words must
// name the culprit and be the same both times, no block may change, and another component continues. `make test-hostile` runs them
// all, ordinary tests some of each kind.
func TestHostile_ComponentsHarmNobody(t *testing.T) {
	all, kinds, ran := attacks(), map[string]int{}, 0
	const sample = 20 // of which one is run
	r, err := wasm.New(wasm.Options{CacheDir: testCache})
	must(t, err)
	other := besideOf(t, r)
	before, began := held(t), time.Now()
	for _, a := range all {
		kinds[a.kind]++
		if os.Getenv("RLHOST_HOSTILE") == "" && kinds[a.kind]%sample != 1 {
			continue
		}
		ran++
		t.Run(a.kind+"/"+a.name, func(t *testing.T) {
			since := held(t)
			first, second := a.live(t, r), a.live(t, r)
			a.judge(t, first)
			if fmt.Sprint(first) != fmt.Sprint(second) {
				t.Errorf("the second time\n%v\nnot\n%v", second, first)
			}
			other.goesOn(t)
			var left leak
			testkit.Until(t, "nothing is left behind", func() bool {
				runtime.GC() // returns the memory of closed arenas
				left.text = held(t).leaked(since)
				return left.text == ""
			}, &left)
		})
	}
	after := held(t)
	t.Logf("%d of %d attacks in %.0f s; %+v before, %+v after", ran, len(all), time.Since(began).Seconds(), before, after)
	const slack = 64 // mappings of Go's own heap
	if len(all) < 300 || after.mappings > before.mappings+slack {
		t.Errorf("%d attacks; %d mappings became %d", len(all), before.mappings, after.mappings)
	}
}

// live takes an attack through a component's life, as far as that goes.
func (a *attack) live(t *testing.T, r *wasm.Runtime) (said account) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guest.wasm")
	must(t, os.WriteFile(path, a.module, 0o600))
	grants := a.grants
	if grants == nil {
		grants = everything
	}
	s := Source{Source: env.Source{Name: "guest", Use: path, Grants: grants, Limits: env.Limits{Step: twoSlices, Init: twoSlices, Memory: 4 << 20}}, MaxRestarts: 3}
	l := NewModules(r)
	defer func() { must(t, l.Close()) }()
	said.said = map[stage]string{}
	note := func(at stage, err error) bool {
		if err != nil {
			said.said[at] = strings.ReplaceAll(err.Error(), filepath.Dir(path)+"/", "")
		}
		return err != nil
	}
	c, err := l.Component(s)
	if note(inLoading, err) {
		return said
	}
	g := c.(*component)
	if note(inConfigure, g.Configure(plugintest.DecodeTable(map[string]any{"key": "value"}))) {
		return said
	}
	t.Run("life", func(t *testing.T) { a.runs(t, g, &said, note) })
	return said
}

// runs starts a configured guest and gives it work.
func (a *attack) runs(t *testing.T, g *component, said *account, note func(stage, error) bool) {
	rig, err := plugintest.TryRig(t, g, plugintest.RigOptions{Name: "guest"}, plugintest.DecodeTable(map[string]any{"key": "value"}))
	if note(inStart, err) {
		return
	}
	x := &scene{Rig: rig, g: g, blocks: newBlocks(t, rig.Host.Arenas, 2, trajectory.Shape{Steps: 2, Envs: 2})}
	rig.From("out", func(m *hostabi.Message) {
		sent := *m
		sent.Handle = sent.Handle & 1 // the block may be another's turn
		said.sent = append(said.sent, sent)
	})
	keep := x.with(1, 2, 3, 4)
	was := x.content(keep)
	send := func() {
		must(t, x.To("in").Emit(hostabi.Message{Handle: keep}))
		note(endsRun, x.Settle())
		if !g.dead && g.run.in.OverLimit() {
			t.Errorf("it has a memory of %d bytes, more than its limit and its windows", g.run.in.Mem.Size)
		}
	}
	send()
	g.fire(1)
	g.Pause(func() {})
	g.Resume()
	send()
	state, err := g.Snapshot()
	if !note(inSnapshot, err) {
		note(inRestore, g.Restore(state))
	}
	note(endsRun, x.Settle())
	must(t, g.Stop())
	if log := strings.ReplaceAll(x.Log.String(), filepath.Dir(g.source.Use)+"/", ""); log != "" {
		note(inRun, fmt.Errorf("%s", withoutTimes(log)))
		note(inStop, fmt.Errorf("%s", withoutTimes(log)))
	}
	if now := x.content(keep); !bytes.Equal(now, was) {
		t.Error("a block that it may only read has changed")
	}
	must(t, x.arena.Release(keep))
}

// content returns a copy of a block.
func (b *blocks) content(h hostabi.Handle) []byte {
	b.t.Helper()
	lease, err := b.arena.Lease(h)
	must(b.t, err)
	defer func() { must(b.t, lease.Release()) }()
	return slices.Clone(lease.Bytes())
}

// withoutTimes removes the time from each line of a log.
func withoutTimes(log string) (text string) {
	for line := range strings.Lines(log) {
		_, rest, _ := strings.Cut(line, " ")
		text += rest
	}
	return text
}

// judge compares the host's words with the attack's expectations.
func (a *attack) judge(t *testing.T, said account) {
	t.Helper()
	for at, text := range said.said {
		if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("%s steers the terminal: %q", at, text)
		}
	}
	if a.at == unnoticed {
		if said.failed() {
			t.Errorf("it is at fault: %v", said.said)
		}
		return
	}
	text, ok := said.said[a.at]
	if !ok {
		t.Errorf("nobody says at %s what is wrong, but %v", a.at, said.said)
	}
	for _, want := range append(a.says, "guest.wasm") {
		if !strings.Contains(text, want) {
			t.Errorf("%s says %s, want %q", a.at, text, want)
		}
	}
	if a.at == inRun && said.said[endsRun] != "" {
		t.Errorf("the run ends: %v", said.said[endsRun])
	}
}

// failed reports whether anything went wrong that is not only a line of the guest's own.
func (s *account) failed() bool {
	for at, text := range s.said {
		if at != inRun && at != inStop || strings.Contains(text, "guest.wasm") {
			return true
		}
	}
	return false
}

// beside is a harmless component next to the attacker.
type beside struct {
	*scene
	counted byte
}

func besideOf(t *testing.T, r *wasm.Runtime) *beside {
	l := NewModules(r)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := l.Component(source(file(t, built{}.bytes()), everything...))
	must(t, err)
	x := &scene{g: c.(*component)}
	x.Rig = plugintest.NewRig(t, c, plugintest.RigOptions{Name: "beside"}, plugintest.DecodeTable(nil))
	x.blocks = newBlocks(t, x.Host.Arenas, 2, trajectory.Shape{Steps: 2, Envs: 2})
	return &beside{scene: x}
}

// goesOn gives it another message.
func (b *beside) goesOn(t *testing.T) {
	t.Helper()
	must(t, b.send(1))
	if b.counted++; b.scene.counted() != b.counted {
		t.Errorf("the other component has handled %d messages, want %d", b.scene.counted(), b.counted)
	}
}
