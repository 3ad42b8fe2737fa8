package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/rlhost/rlhost/internal/markdown"
	"github.com/rlhost/rlhost/plugins/componentcheck"
)

// componentSentences are the sentences of the component ABI, each with the checks and the conformance cases that test it; * stands for
// any end of a name.
var componentSentences = []struct{ sentence, tests string }{
	{`Calls come in the order of a life, none within an import`, "minimal, order, initialize, not-reentered, identity, command"},
	{"`rl_host` comes before `rl_configure` and may refuse", "host, host-refused, order"},
	{`The table is lines in the order of their keys; refusals name keys`, "table, table-empty, table-refused, table-changes-ports"},
	{`Marker, major and needs are read first`, "marker-missing, marker-later, marker-candidate, later-major, needs-unknown, later-flag, later-minor"},
	{`What is not known is treated by the table above`, "flag-unknown, port-flag-unknown, column-flag-unknown, dtype-unknown, reserved-*, longer-records, requests-reserved, export-unknown, import-unknown, optional-*"},
	{`The manifest has its records, strings and limits`, "name-*, manifest-*, head-short, port-*, ports-*, slots-twice, signals-*, column-slot, column-nameless, column-lines, column-twice, columns-*, message-*, binding-*, string-*, strings-*, lengths-differ, export-missing, export-signature"},
	{`Capabilities need a grant; the clock of WASI needs none; there are no files`, "import-denied, import-granted, clock, random, files"},
	{`A message is as sent; a token names a block until its slot returns`, "message, no-block, token-over, token-forged"},
	{`A request is answered once, in its slot`, "C06, request, request-unanswered"},
	{`The answer to an act request has the asked actions and no others`, "C08"},
	{`Schemas of the payloads of the table are theirs`, "C01"},
	{`The ports make a wrapper, not the names of columns`, "column-wrapper"},
	{`An element of a column is where its binding says; an absent optional one is at 0`, "columns, column-optional, column-missing, column-dtype"},
	{`Only what a wire grants is written, until the block is emitted or the slot returns`, "C07, private, written-*"},
	{`Columns by their names`, "by-name, by-name-*"},
	{`A lease keeps a block where it is, until as many releases`, "C05, lease-*, lease"},
	{`Outcomes, limits and senders of messages`, "emit-*, emit, sender"},
	{`Timers begin, repeat, are cancelled, and wait for a pause`, "timer-*, timer"},
	{`Metrics, lines and the end of a run`, "metric-*, metric, log, stop"},
	{`A saved state is what a later instance gets; another version is refused as such`, "C04, state-*, state, stateless"},
	{`The same messages give the same outputs`, "C03"},
	{`A fault costs a message; a negative status ends the run; a positive one is a fault`, "C02, fault, fault-timer, loop, recursion, status, status-timer, status-positive, start-fails, start-positive, host-positive, configure-positive"},
	{`Memory that the guest gives is its own, and given once`, "memory-*"},
}

// sentenceTable is the table of the sentences. Each case and each check must stand for one, and each name must be one of a case or a check.
func sentenceTable(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "hostabi/conformance/component/cases.json"))
	if err != nil {
		return "", err
	}
	var cases []struct{ Name string }
	if err := json.Unmarshal(text, &cases); err != nil {
		return "", err
	}
	names := componentcheck.Codes()
	for _, c := range cases {
		names = append(names, c.Name)
	}
	used := map[string]bool{}
	var rows [][]string
	for _, s := range componentSentences {
		var shown []string
		for pattern := range strings.SplitSeq(s.tests, ", ") {
			found := false
			for _, name := range names {
				if ok, _ := path.Match(pattern, name); ok {
					found, used[name] = true, true
				}
			}
			if !found {
				return "", fmt.Errorf("no case and no check is called %s", pattern)
			}
			shown = append(shown, "`"+pattern+"`")
		}
		rows = append(rows, []string{s.sentence, strings.Join(shown, ", ")})
	}
	for _, name := range names {
		if !used[name] {
			return "", fmt.Errorf("no sentence names the case or check %s", name)
		}
	}
	return markdown.Table([]string{"Sentence", "Tested by"}, rows), nil
}
