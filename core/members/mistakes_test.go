package members

import (
	"os"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

var mistakes = []testkit.Mistake{
	{Name: "leases end by the clock", File: "awake.go", Right: "a.begun && since <= a.Gap", Wrong: "a.begun"},
	{Name: "leases never end", File: "owner.go", Right: "case h.State == Here && total-h.since > o.options.TTL:", Wrong: "case false:"},
	{Name: "grants that nobody took stay", File: "owner.go", Right: "case h.State == Admitted && total-h.since > o.options.Join:", Wrong: "case false:"},
	{Name: "a lost host renews its lease", File: "owner.go", Right: "h.State == Admitted || h.State == Here", Wrong: "h.State != Left"},
	{Name: "another incarnation renews", File: "owner.go", Right: "!o.Admits(key) || h.Grant.Incarnation != incarnation {\n\t\treturn false", Wrong: "!o.Admits(key) {\n\t\treturn false"},
	{Name: "two hosts have one name", File: "owner.go", Right: "h = &Host{Grant: Grant{Name: o.nameFor(r.Name)}}", Wrong: "h = &Host{Grant: Grant{Name: r.Name}}"},
	{Name: "two owners grant one incarnation", File: "owner.go", Right: "uint64(o.options.Epoch)<<32 | uint64(o.grants)", Wrong: "uint64(o.grants)"},
	{Name: "ended rows fill the table", File: "owner.go", Right: "if !o.Admits(key) && (", Wrong: "if false && ("},
	{Name: "a stranger does not ask again", File: "member.go", Right: "func (m *Member) Stranger(now time.Duration, incarnation uint64) {\n\tif ", Wrong: "func (m *Member) Stranger(now time.Duration, incarnation uint64) {\n\tif false && "},
	{Name: "a refused host does not ask again", File: "member.go", Right: "if m.step != asking && incarnation", Wrong: "if false && incarnation"},
	{Name: "a host asks once", File: "member.go", Right: "case asking:\n\t\tm.port.Ask(m.request)\n\tcase connecting", Wrong: "case connecting"},
	{Name: "a host asks again with the same attempt", File: "member.go", Right: "\tm.request.Attempt++\n", Wrong: ""},
}

// The simulation is worth what it finds.
func TestMistakes_AreFound(t *testing.T) {
	if os.Getenv("RLHOST_LONG") == "" {
		t.Skip("it builds the simulation for each mistake: make test-hosts")
	}
	testkit.FindsMistakes(t, "TestFaults_.*|TestOwner_.*", []string{"RLHOST_FAULTS=10000", "RLHOST_SEED=1"}, mistakes)
}
