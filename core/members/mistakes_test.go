package members

import (
	"os"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

var mistakes = []testkit.Mistake{
	{"leases end by the clock", "awake.go", "a.begun && since <= a.Gap", "a.begun"},
	{"leases never end", "owner.go", "case h.State == Here && total-h.since > o.options.TTL:", "case false:"},
	{"grants that nobody took stay", "owner.go", "case h.State == Admitted && total-h.since > o.options.Join:", "case false:"},
	{"a lost host renews its lease", "owner.go", "h.State == Admitted || h.State == Here", "h.State != Left"},
	{"another incarnation renews", "owner.go", "!o.Admits(key) || h.Incarnation != incarnation {\n\t\treturn false", "!o.Admits(key) {\n\t\treturn false"},
	{"two hosts have one name", "owner.go", "h = &Host{Grant: Grant{Name: o.nameFor(r.Name)}}", "h = &Host{Grant: Grant{Name: r.Name}}"},
	{"two owners grant one incarnation", "owner.go", "uint64(o.options.Epoch)<<32 | uint64(o.grants)", "uint64(o.grants)"},
	{"ended rows fill the table", "owner.go", "if !o.Admits(key) && (", "if false && ("},
	{"a stranger does not ask again", "member.go", "func (m *Member) Stranger(now time.Duration, incarnation uint64) {\n\tif ", "func (m *Member) Stranger(now time.Duration, incarnation uint64) {\n\tif false && "},
	{"a refused host does not ask again", "member.go", "if m.step != asking && incarnation", "if false && incarnation"},
	{"a host asks once", "member.go", "case asking:\n\t\tm.port.Ask(m.request)\n\tcase connecting", "case connecting"},
	{"a host asks again with the same attempt", "member.go", "\tm.request.Attempt++\n", ""},
}

// The simulation is worth what it finds.
func TestMistakes_AreFound(t *testing.T) {
	if os.Getenv("RLHOST_LONG") == "" {
		t.Skip("it builds the simulation for each mistake: make test-hosts")
	}
	testkit.FindsMistakes(t, "TestFaults_.*|TestOwner_.*", []string{"RLHOST_FAULTS=10000", "RLHOST_SEED=1"}, mistakes)
}
