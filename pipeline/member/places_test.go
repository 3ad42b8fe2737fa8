package member

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/pipeline/placement"
)

// pairs is a pipeline with pairs of a rollout and an inference.
func pairs(t *testing.T, count int, rule string) *graph.Graph {
	t.Helper()
	g, problems := graphtest.Parse("x.toml", fmt.Appendf(nil, `rlhost = 1
[run]
name = "x"
[env.cartpole]
use = "cartpole@1"
[train]
preset = "fast"
[group.actors]
components = ["rollout", "inference"]
count = %d
place = %s
`, count, rule), graph.ParseOptions{Parts: graphtest.Standard()})
	if g == nil {
		t.Fatal(problems)
	}
	return g
}

// at returns what has the rollouts, by their numbers: a host's name and the number of its share, "own", or "-" for none.
func (p *places) at(count int) string {
	var list []string
	for i := range count {
		name := fmt.Sprintf("rollout[%d]", i)
		s := p.of(name)
		switch _, away := p.away[name]; {
		case !away:
			list = append(list, "own")
		case s == nil:
			list = append(list, "-")
		default:
			list = append(list, fmt.Sprint(s.host, s.Number))
		}
	}
	return strings.Join(list, " ")
}

// Each line is what happens, and who has which of four pairs then.
func TestPlaces_FollowHostsThatComeAndGo(t *testing.T) {
	for rule, story := range map[string][]string{
		`"spread"`: {
			"settle: own own - -", "+b: own own b1 b1", "+c: own own b1 b1", "-b: own own c2 c2", "+b: own own c2 c2", "-c: own own b3 b3", "-b: own own b3 b3",
			"+b: own own b3 b3", "!b: own own - -", "+c: own own c4 c4",
		},
		`{ per_host = 1 }`: {
			"+b: - - - -", "settle: own b1 - -", "+c: own b1 c2 -", "-b: own b1 c2 -", "+d: own d3 c2 -", "+b: own d3 c2 b4", "!c: own d3 - b4",
		},
		`{ host = "b" }`: {
			"settle: - - - -", "+c: - - - -", "+b: b1 b1 b1 b1", "-b: b1 b1 b1 b1", "+c: b1 b1 b1 b1", "+b': b2 b2 b2 b2", "!b: b2 b2 b2 b2",
		},
		`{ label = "gpu=c" }`: {"settle: - - - -", "+b: - - - -", "+c: c1 c1 c1 c1", "-c: c1 c1 c1 c1", "+c': c2 c2 c2 c2"},
	} {
		p := newPlaces(pairs(t, 4, rule), 2)
		for _, line := range story {
			event, want, _ := strings.Cut(line, ": ")
			key := event[1:]
			switch event[0] {
			case 's':
				p.settle()
			case '+':
				name := key[:1] // b' is another process with the name b
				p.here[key] = placement.Host{Name: name, Slots: 4, Labels: map[string]string{"gpu": name}}
			case '!':
				p.end(key)
				delete(p.here, key)
			default:
				delete(p.here, key)
			}
			if p.changes > 0 {
				p.place()
			} else if want = strings.ReplaceAll(want, "-", "own"); event[0] != 's' {
				continue // nothing is decided
			}
			if got := p.at(4); got != want {
				t.Errorf("%s: %s: %s, want %s", rule, event, got, want)
			}
		}
	}
}

// Whatever hosts come, are lost and leave: an instance has one share at most, pairs stay together, a share never changes and none comes back, and
// what a host that is here has stays there.
func TestPlaces_KeepTheirPromises(t *testing.T) {
	seed := uint64(1)
	if text := os.Getenv("RLHOST_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	rules := []string{`"pack"`, `"spread"`, `{ per_host = 2 }`, `{ label = "gpu=0" }`, `{ host = "h1" }`}
	for _, rule := range rules {
		g := pairs(t, 6, rule)
		for ; seed%50 != 0; seed++ {
			if err := playPlaces(g, rand.New(rand.NewPCG(seed, 0))); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, rule, err)
			}
		}
		seed++
	}
}

func playPlaces(g *graph.Graph, rng *rand.Rand) error {
	p := newPlaces(g, rng.IntN(4))
	p.settle()
	texts := map[uint64]string{}
	over := map[uint64]bool{}
	slots := rng.Perm(7)
	for range 60 {
		n := rng.IntN(5)
		key := fmt.Sprint(n)
		before := slices.Clone(p.shares)
		switch rng.IntN(5) {
		case 0:
			delete(p.here, key)
		case 1:
			delete(p.here, key)
			p.end(key)
		default:
			if _, here := p.here[key]; here {
				continue
			}
			p.here[key] = placement.Host{Name: "h" + key, Slots: slots[n], Labels: map[string]string{"gpu": key}}
		}
		p.place()
		seen := map[string]bool{}
		for _, s := range p.shares {
			text := fmt.Sprint(s.key, s.Instances, s.Begun)
			if was := texts[s.Number]; was != "" && was != text || over[s.Number] {
				return fmt.Errorf("share %d was %s, is %s", s.Number, was, text)
			}
			texts[s.Number] = text
			for _, name := range s.Instances {
				other := strings.NewReplacer("rollout", "inference", "inference", "rollout").Replace(name)
				if seen[name] || !slices.Contains(s.Instances, other) {
					return fmt.Errorf("%s is there twice, or without %s", name, other)
				}
				seen[name] = true
			}
		}
		for _, s := range before {
			_, here := p.here[s.key]
			stays := slices.Contains(p.shares, s)
			if over[s.Number] = !stays; !stays && here && s.key != key {
				return fmt.Errorf("share %d of host %s, which is here, has ended", s.Number, s.key)
			}
		}
		if err := p.noneWaits(); err != nil {
			return err
		}
	}
	return nil
}

// noneWaits returns what has no host although the plan has room for it.
func (p *places) noneWaits() error {
	plan := placement.Place(p.graph, p.hosts(), p.kept())
	p.together(plan)
	for name, at := range p.away {
		host, placed := plan.Hosts[at]
		s := p.of(name)
		if placed && (s == nil || s.host != host || p.here[s.key].Name != host) {
			return fmt.Errorf("%s waits, and host %s has room", name, host)
		}
	}
	return nil
}

// A host that leaves before it has sent anything has had nothing: its instances begin elsewhere as if it had never been there. That is so for
// each graph of the run.
func TestPlaces_WhoNeverBeganHasHadNothing(t *testing.T) {
	g := pairs(t, 2, `{ host = "b" }`)
	p := newPlaces(g, 0)
	p.settle()
	comes := func(key string) *share {
		p.here[key] = placement.Host{Name: "b", Slots: 4}
		p.place()
		return p.of("rollout[1]")
	}
	leaves := func(key string) {
		delete(p.here, key)
		p.end(key)
		p.place()
	}
	for n, c := range []struct{ begins, graph bool }{{}, {}, {begins: true}, {graph: true}, {begins: true}, {}} {
		want := 0
		if n > 2 {
			want = 1
		}
		if n > 4 {
			want = 2
		}
		key := fmt.Sprint(n)
		s := comes(key)
		if s == nil || s.Begun != want {
			t.Fatalf("host %d has %+v, want that %d have begun before", n, s, want)
		}
		if c.begins {
			p.began(s)
			p.began(s) // another of its instances
		}
		leaves(key)
		if c.graph {
			away := p.away
			p.begin(g)
			p.away = away
		}
	}
}
