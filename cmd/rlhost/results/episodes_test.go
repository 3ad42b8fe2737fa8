package results

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// What is listed is what sorting all would list, and a file that is being written is read up to its last whole line.
func TestEpisodes_AreChosenAsBySorting(t *testing.T) {
	const seed = 9
	random := rand.New(rand.NewPCG(seed, seed))
	type episode struct {
		number, value int
		policy        string
	}
	var all []episode
	text := "env_step,env,return,length,terminated,agent,policy,policy_version\n"
	for i := range 500 {
		e := episode{i + 1, random.IntN(40), []string{"main", "other"}[random.IntN(2)]}
		all = append(all, e)
		text += fmt.Sprintf("%d,0,%d,3,true,0,%s,1\n", i, e.value, e.policy)
	}
	text += "501,0,-9999"
	for _, c := range []Episodes{{Worst: 7}, {Best: 30, Policy: "other"}, {Last: 3}, {}, {Worst: 1000, Policy: "main"}, {Best: 5, Policy: "none"}} {
		rows, err := c.choose(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		want := slices.DeleteFunc(slices.Clone(all), func(e episode) bool { return c.Policy != "" && e.policy != c.Policy })
		slices.SortStableFunc(want, func(a, b episode) int {
			switch {
			case c.Worst > 0:
				return cmp.Compare(a.value, b.value)
			case c.Best > 0:
				return cmp.Compare(b.value, a.value)
			}
			return cmp.Compare(b.number, a.number)
		})
		want = want[:min(len(want), cmp.Or(max(c.Worst, c.Best, c.Last), 20))]
		if len(rows) != len(want)+1 {
			t.Fatalf("seed %d, %+v: %d rows, want %d", seed, c, len(rows)-1, len(want))
		}
		for i, e := range want {
			if got := rows[i+1]; got[0] != fmt.Sprint(e.number) || got[3] != fmt.Sprint(e.value) {
				t.Fatalf("seed %d, %+v: row %d is %v, want %v", seed, c, i, got, e)
			}
		}
	}
	for text, want := range map[string]string{"": "no first line", "a,b\n1,2\n": `no column "return"`, "env_step,env,return\n": "without the column policy"} {
		c := Episodes{Policy: "main"}
		if _, err := c.choose(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
