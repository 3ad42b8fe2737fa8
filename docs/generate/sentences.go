package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/internal/markdown"
)

// sentence is one that a page holds, and what tests it.
type sentence struct {
	text  string
	tests []string
}

// componentSentences are the sentences of the component ABI, each with the checks and the conformance cases that test it; * stands for
// any end of a name.
var componentSentences = []sentence{
	{`Calls come in the order of a life, none within an import`, []string{"minimal", "order", "initialize", "not-reentered", "identity", "command"}},
	{"`rl_host` comes before `rl_configure` and may refuse", []string{"host", "host-refused", "order"}},
	{`The table is lines in the order of their keys; refusals name keys`, []string{"table", "table-empty", "table-refused", "table-changes-ports"}},
	{`Marker, major and needs are read first`, []string{"marker-missing", "marker-later", "marker-candidate", "later-major", "needs-unknown", "later-flag", "later-minor", "ask-type-later"}},
	{`What is not known is treated by the table above`, []string{"flag-unknown", "port-flag-unknown", "column-flag-unknown", "dtype-unknown", "reserved-*", "longer-records", "requests-reserved", "export-unknown", "import-unknown", "optional-*"}},
	{`The manifest has its records, strings and limits`, []string{"name-*", "manifest-*", "head-short", "port-*", "ports-*", "slots-twice", "signals-*", "column-slot", "column-nameless", "column-lines", "column-twice", "columns-*", "message-*", "binding-*", "string-*", "strings-*", "lengths-differ", "ask-no-export", "ask-name", "ask-twice", "ask-type", "ask-argument-*", "ask-short", "ask-reserved", "asks-257", "export-missing", "export-signature"}},
	{`Capabilities need a grant; the clock of WASI needs none; there are no files`, []string{"import-denied", "import-granted", "clock", "random", "files"}},
	{`A message is as sent; a token names a block until its slot returns`, []string{"message", "no-block", "token-over", "token-forged"}},
	{`A request is answered once, in its slot`, []string{"C06", "request", "request-unanswered"}},
	{`A question by name is answered once, within its call, by JSON`, []string{"ask", "ask-longest", "ask-no-json", "ask-unfit", "ask-paused", "ask-state"}},
	{"A status of `rl_request` is the error of the question; a fault costs its answer", []string{"ask-status", "ask-argument", "ask-fault", "ask-loop"}},
	{"`rl_request` emits nothing, and its clock stands still", []string{"ask-emit", "ask-clock"}},
	{"A question to others comes back once, between two messages, by `rl_answer`", []string{"others", "others-fault", "others-late", "others-unfit", "others-asked", "others-again", "others-early", "others-paused", "others-clock"}},
	{"`ask` has limits, and a manifest that asks is checked", []string{"others-arguments", "others-most", "others-minor", "others-no-export", "others-name", "others-type", "others-257", "others-reserved", "others-twice"}},
	{"A status of `rl_answer` ends the run; a fault costs the answer and what the saved state does not know", []string{"others-status", "others-positive", "others-loop", "others-trap", "others-forgotten"}},
	{`The answer to an act request has the asked actions and no others`, []string{"C08"}},
	{`Schemas of the payloads of the table are theirs`, []string{"C01"}},
	{`The ports make a wrapper, not the names of columns`, []string{"column-wrapper"}},
	{`An element of a column is where its binding says; an absent optional one is at 0`, []string{"columns", "column-optional", "column-missing", "column-dtype"}},
	{`Only what a wire grants is written, until the block is emitted or the slot returns`, []string{"C07", "private", "written-*"}},
	{`Columns by their names`, []string{"by-name", "by-name-*"}},
	{`A lease keeps a block where it is, until as many releases`, []string{"C05", "lease-*", "lease"}},
	{`Outcomes, limits and senders of messages`, []string{"emit-*", "emit", "sender"}},
	{`Timers begin, repeat, are cancelled, and wait for a pause`, []string{"timer-*", "timer"}},
	{`Metrics, lines and the end of a run`, []string{"metric-*", "metric", "log", "stop"}},
	{`A saved state is what a later instance gets; another version is refused as such`, []string{"C04", "state-*", "state", "stateless"}},
	{`The same messages give the same outputs`, []string{"C03"}},
	{`A fault costs a message; a negative status ends the run; a positive one is a fault`, []string{"C02", "fault", "fault-timer", "loop", "recursion", "status", "status-timer", "status-positive", "start-fails", "start-positive", "host-positive", "configure-positive"}},
	{`Memory that the guest gives is its own, and given once`, []string{"memory-*"}},
}

// sentenceTable is the table of a page's sentences. Each case of the set in a folder must stand for one, and each check too where
// every is true; each name must be that of a case or a check, unless it is several words.
func sentenceTable(sentences []sentence, folder string, checks []string, every bool) func(root string) (string, error) {
	return func(root string) (string, error) {
		text, err := os.ReadFile(filepath.Join(root, "hostabi/conformance", folder, "cases.json"))
		if err != nil {
			return "", err
		}
		var cases []struct{ Name string }
		if err := json.Unmarshal(text, &cases); err != nil {
			return "", err
		}
		names, used := slices.Clone(checks), map[string]bool{}
		for _, check := range checks {
			used[check] = !every
		}
		for _, c := range cases {
			names = append(names, c.Name)
		}
		var rows [][]string
		for _, s := range sentences {
			tested, err := testedBy(s.tests, names, used)
			if err != nil {
				return "", err
			}
			rows = append(rows, []string{s.text, tested})
		}
		for _, name := range names {
			if !used[name] {
				return "", fmt.Errorf("no sentence names the case or check %s", name)
			}
		}
		return markdown.Table([]string{"Sentence", "Tested by"}, rows), nil
	}
}

// testedBy returns a cell of the table, and marks the names that it uses.
func testedBy(tests, names []string, used map[string]bool) (string, error) {
	var shown []string
	for _, pattern := range tests {
		if strings.Contains(pattern, " ") {
			shown = append(shown, pattern)
			continue
		}
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
	return strings.Join(shown, ", "), nil
}
