package placement

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

const pairs = `rlhost = 1
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
`

func parsed(t *testing.T, count int, rule string) *graph.Graph {
	t.Helper()
	g, problems := graphtest.Parse("x.toml", fmt.Appendf(nil, pairs, count, rule), graph.ParseOptions{Parts: graphtest.Standard()})
	if g == nil {
		t.Fatal(problems)
	}
	return g
}

// four are the run's own host and three others.
func four() []Host {
	return []Host{{"home", 2, nil}, {"b", 4, map[string]string{"gpu": "h100"}}, {"c", 1, nil}, {"d", 8, map[string]string{"gpu": "h100"}}}
}

// hostsOf returns the hosts of the rollouts in their order.
func hostsOf(p *Plan, count int) (list []string) {
	for i := range count {
		list = append(list, p.Hosts[Instance{"rollout", i}])
	}
	return list
}

func TestPlace_FollowsTheRule(t *testing.T) {
	for rule, want := range map[string]string{
		`"pack"`:                               "home home b b b b c d",
		`"spread"`:                             "home b c d home b d b",
		`{ host = "b" }`:                       "b b b b - - - -",
		`{ host = "e" }`:                       "- - - - - - - -",
		`{ label = "gpu=h100" }`:               "b b b b d d d d",
		`{ label = "gpu=a100" }`:               "- - - - - - - -",
		`{ per_host = 2 }`:                     "home home b b c d d -",
		`{ label = "gpu=h100", per_host = 3 }`: "b b b d d d - -",
	} {
		p := Place(parsed(t, 8, rule), four(), nil)
		got := strings.Join(hostsOf(p, 8), " ")
		want = strings.Trim(strings.ReplaceAll(want, "-", ""), "")
		if got != want {
			t.Errorf("place = %s: %q, want %q", rule, got, want)
		}
		if p.Hosts[Instance{"learner", 0}] != "home" {
			t.Errorf("place = %s: the learner, which has no rule, is on %q", rule, p.Hosts[Instance{"learner", 0}])
		}
	}
}

func TestPlan_SaysWhatHasNoHost(t *testing.T) {
	for rule, want := range map[string]string{
		`"pack"`:                 `x.toml:11:9: error[E145]: 1 of 16 instances has no host of rollout and inference: the hosts that it may have offer 15 slots, and none is free`,
		`{ host = "e" }`:         `there is no host "e"`,
		`{ label = "gpu=a100" }`: `no host has the label gpu=a100`,
		`{ per_host = 1 }`:       `4 hosts may have 1 each, and there is no slot on another`,
	} {
		g := parsed(t, 16, rule)
		if got := Place(g, four(), nil).Problems(g).String(); !strings.Contains(got, want) || !strings.Contains(got, "help: ") {
			t.Errorf("place = %s: %s, want %q", rule, got, want)
		}
	}
}

// random makes hosts and a rule, from a seed.
type random struct{ *rand.Rand }

func (r random) hosts() (list []Host) {
	for i := range 1 + r.IntN(6) {
		h := Host{Name: fmt.Sprintf("h%d", i), Slots: r.IntN(6), Labels: map[string]string{}}
		if r.IntN(2) == 0 {
			h.Labels["gpu"] = []string{"a", "b"}[r.IntN(2)]
		}
		list = append(list, h)
	}
	return list
}

func (r random) rule() string {
	return []string{`"pack"`, `"spread"`, fmt.Sprintf(`{ host = "h%d" }`, r.IntN(6)), `{ label = "gpu=a" }`,
		fmt.Sprintf("{ per_host = %d }", 1+r.IntN(3)), fmt.Sprintf(`{ label = "gpu=b", per_host = %d }`, 1+r.IntN(3))}[r.IntN(6)]
}

// Whatever the hosts and the rule: no host above its slots, pairs together, none left while a host has room for it, the same plan twice; a host
// that comes moves nothing, and one that goes moves its own alone.
func TestPlace_KeepsItsPromises(t *testing.T) {
	seed := rand.Uint64()
	if text := os.Getenv("RLHOST_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("RLHOST_SEED=%d", seed)
	r := random{rand.New(rand.NewPCG(seed, 0))}
	for range 300 {
		hosts, rule, count := r.hosts(), r.rule(), 1+r.IntN(12)
		g := parsed(t, count, rule)
		p := Place(g, hosts, nil)
		what := fmt.Sprintf("count %d, place = %s, hosts %v", count, rule, hosts)
		holds(t, what, g, hosts, p)
		if again := Place(g, hosts, nil); !reflect.DeepEqual(p, again) {
			t.Errorf("%s: another plan the second time", what)
		}
		more := append(slices.Clone(hosts), Host{Name: "new", Slots: r.IntN(6), Labels: map[string]string{"gpu": "a"}})
		with := Place(g, more, p)
		holds(t, what+" and a new one", g, more, with)
		for at, host := range p.Hosts {
			if with.Hosts[at] != host {
				t.Errorf("%s: a new host moves %v from %s to %s", what, at, host, with.Hosts[at])
			}
		}
		if len(hosts) < 2 {
			continue
		}
		gone := 1 + r.IntN(len(hosts)-1)
		rest := slices.Delete(slices.Clone(hosts), gone, gone+1)
		without := Place(g, rest, p)
		holds(t, what+" without "+hosts[gone].Name, g, rest, without)
		for at, host := range p.Hosts {
			if host != hosts[gone].Name && without.Hosts[at] != host {
				t.Errorf("%s: without %s %v moves from %s to %s", what, hosts[gone].Name, at, host, without.Hosts[at])
			}
		}
	}
}

func holds(t *testing.T, what string, g *graph.Graph, hosts []Host, p *Plan) {
	t.Helper()
	rule, count, used := g.Group("actors").Hosts, g.Group("actors").Count, map[string]int{}
	for i := range count {
		host := p.Hosts[Instance{"rollout", i}]
		if other := p.Hosts[Instance{"inference", i}]; host != other {
			t.Errorf("%s: the pair %d is on %q and %q", what, i, host, other)
		}
		used[host]++
	}
	left := 0
	for _, l := range p.Left {
		left += len(l.Indices)
	}
	if left != used[""] || left > 0 && (p.Left[0].Reason == "" || len(p.Problems(g)) == 0) {
		t.Errorf("%s: %d without a host, told are %+v", what, used[""], p.Left)
	}
	delete(used, "")
	for _, h := range hosts {
		room := used[h.Name] < h.Slots && allows(rule, &h) && (rule.PerHost == 0 || used[h.Name] < rule.PerHost)
		switch {
		case used[h.Name] > h.Slots:
			t.Errorf("%s: %d on %s", what, used[h.Name], h.Name)
		case used[h.Name] > 0 && !allows(rule, &h), rule.PerHost > 0 && used[h.Name] > rule.PerHost:
			t.Errorf("%s: the rule does not allow %d on %s", what, used[h.Name], h.Name)
		case left > 0 && room:
			t.Errorf("%s: %d are left and %s has room", what, left, h.Name)
		}
		delete(used, h.Name)
	}
	if len(used) > 0 {
		t.Errorf("%s: hosts that are not there: %v", what, slices.Sorted(maps.Keys(used)))
	}
	for _, x := range g.Components {
		if g.GroupOfComponent(x.Name) == nil && p.Hosts[Instance{x.Name, 0}] != hosts[0].Name {
			t.Errorf("%s: %s has no rule and is on %q", what, x.Name, p.Hosts[Instance{x.Name, 0}])
		}
	}
}

func TestParseHosts(t *testing.T) {
	got, err := ParseHosts("# machines\nhome slots=2\n\nb gpu=h100 slots=4, c # the old one\n")
	want := []Host{{"home", 2, map[string]string{}}, {"b", 4, map[string]string{"gpu": "h100"}}, {"c", Unknown, map[string]string{}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for text, want := range map[string]string{
		"a slots=x":                      `line 1: "slots=x" of host "a": want a number from 0 to 4096`,
		"a\nb slots=-1":                  `line 2: "slots=-1"`,
		"a slots=5000":                   "want a number from 0 to 4096",
		"a, b, a":                        `host "a" is there twice`,
		"slots=4":                        `"slots=4" is no name of a host`,
		"a gpu":                          `host "a": "gpu" is no label`,
		"a gpu=":                         `is no label`,
		"a gpu=x gpu=y":                  `the label gpu is there twice: x and y`,
		"a k=\x01":                       `is no label`,
		"a " + string(make([]byte, 300)): "is no label",
	} {
		if _, err := ParseHosts(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
