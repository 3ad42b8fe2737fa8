package componentcheck

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/envcheck"
)

// Options of Run.
type Options struct {
	// Make returns an unconfigured instance. Configure decodes its table, as component.Component's does.
	Make      func() (component.Component, error)
	Configure func(into any) error
	Messages  []Message // to play; none: some are made up for the payloads that the host knows

	Done func(envcheck.Result) // called after each check; may be nil
}

// check is one entry of the list.
type check struct {
	id, title, help string
	run             func(*checker) (envcheck.Verdict, string, error)
}

// checks returns all checks in the order in which they run. If the first two fail, later ones are skipped.
func checks() []check {
	return []check{
		{"C01", "describes itself", "correct the table, or what rl_configure and rl_manifest do", (*checker).describes},
		{"C02", "handles messages without a fault", "see the reason above", (*checker).handles},
		{"C03", "same messages, same outputs", "look for memory that is read before it is written, for time, and for addresses that count", (*checker).sameOutputs},
		{"C04", "a snapshot gives the same future", "save all that later messages depend on, and nothing of the table", (*checker).snapshot},
		{"C05", "gives blocks back", "release each lease; blocks that are kept are missing in the run", (*checker).givesBack},
		{"C06", "answers each request once", "emit the message of a request on the signal of its answers, also where there is nothing to write", (*checker).answers},
		{"C07", "writes what is granted alone", "ask for the column with write access, and grant it in the wire", (*checker).writes},
		{"C08", "writes the actions it is asked for", "write action in row t for each agent whose active is 1 and whose policy is the request's, and go through the agents' axis too", (*checker).acts},
	}
}

// Run runs all checks.
func Run(o Options) []envcheck.Result {
	c := &checker{o: o}
	var results []envcheck.Result
	for _, k := range checks() {
		r := envcheck.Result{ID: k.id, Title: k.title}
		var err error
		if r.Verdict, r.Detail, err = k.run(c); err != nil {
			r.Verdict, r.Detail = envcheck.Failed, err.Error()
		}
		if r.Verdict != envcheck.OK {
			r.Help = k.help
		}
		results = append(results, r)
		if o.Done != nil {
			o.Done(r)
		}
		if r.Verdict == envcheck.Failed && (k.id == "C01" || k.id == "C02") {
			break
		}
	}
	return results
}

// checker is the shared state of the checks.
type checker struct {
	o        Options
	manifest component.Manifest
	policy   string                   // that its table names
	looks    []hostabi.ManifestColumn // columns that it says it looks at
	items    []item
	first    outcome // of playing all items
}

func (k *checker) describes() (envcheck.Verdict, string, error) {
	made, err := k.o.Make()
	if err == nil {
		err = made.Configure(k.o.Configure)
	}
	if err != nil {
		return envcheck.Failed, "", err
	}
	k.manifest = made.Manifest()
	if w, ok := made.(component.Watched); ok {
		k.looks = w.Looks()
	}
	if err := errors.Join(agree("slot", k.manifest.Slots), agree("signal", k.manifest.Signals)); err != nil {
		return envcheck.Failed, "", errors.Join(err, made.Stop())
	}
	k.policy = policyOf(k.o.Configure)
	var ports []string
	for _, p := range k.manifest.Slots {
		ports = append(ports, "slot "+p.Name+" ("+p.Payload+")")
	}
	for _, p := range k.manifest.Signals {
		ports = append(ports, "signal "+p.Name+" ("+p.Payload+")")
	}
	return envcheck.OK, strings.Join(ports, ", "), made.Stop()
}

// agree refuses ports with another schema than the host's for a payload that the host knows: nothing could be wired to them.
func agree(what string, ports []component.Port) error {
	for _, p := range ports {
		known := component.PayloadOf(p.Payload)
		if want := known.Schema(); want != 0 && p.Agreed() != want {
			return fmt.Errorf("%s %s: the schema of %s is %016x, it says %016x: write that one, or 0", what, p.Name, p.Payload, want, p.Schema)
		}
	}
	return nil
}

// policyOf returns the key policy of a component's table, "" where there is none.
func policyOf(decode func(into any) error) string {
	values := map[string]any{}
	if decode(&values) != nil {
		return ""
	}
	name, _ := values["policy"].(string)
	return name
}

func (k *checker) handles() (envcheck.Verdict, string, error) {
	var silent []string
	var err error
	if k.items, silent, err = itemsFor(&k.manifest, k.looks, k.policy, k.o.Messages); err != nil {
		return envcheck.Failed, "", err
	}
	if len(k.items) == 0 {
		return envcheck.Warning, "there is nothing to play for its slots: give it a recording", nil
	}
	if k.first, err = k.play(k.items, nil); err != nil {
		return envcheck.Failed, "", err
	}
	detail := fmt.Sprintf("%d messages, %d sent", len(k.items), len(k.first.sent))
	if len(silent) > 0 {
		return envcheck.Warning, detail + "; there is nothing to play for " + strings.Join(silent, ", "), nil
	}
	return envcheck.OK, detail, nil
}

// play starts an instance, perhaps from a state, gives it items, pauses it and stops it.
func (k *checker) play(items []item, from *component.State) (outcome, error) {
	s, err := k.begin(from)
	if err == nil {
		err = s.playAll(items)
	}
	return s.outcome, errors.Join(err, s.end())
}

func (k *checker) sameOutputs() (envcheck.Verdict, string, error) {
	again, err := k.play(k.items, nil)
	if err != nil {
		return envcheck.Failed, "", err
	}
	return same(k.first.sent, again.sent, "of two instances")
}

// same compares the sent messages.
func same(want, got []sent, whose string) (envcheck.Verdict, string, error) {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return envcheck.Failed, fmt.Sprintf("output %d %s differs: %v, %v", i+1, whose, want[i], got[i]), nil
		}
	}
	if len(want) != len(got) {
		return envcheck.Failed, fmt.Sprintf("%d and %d outputs %s", len(want), len(got), whose), nil
	}
	return envcheck.OK, fmt.Sprintf("%d outputs", len(want)), nil
}

func (k *checker) snapshot() (envcheck.Verdict, string, error) {
	half := len(k.items) / 2
	s, err := k.begin(nil)
	if err == nil {
		err = s.playAll(k.items[:half])
	}
	var state component.State
	if err == nil {
		state, err = s.pausedSnapshot()
	}
	before := len(s.sent)
	err = errors.Join(err, s.end())
	none := errors.Is(err, component.ErrNoSnapshot)
	switch {
	case none && s.kept > 0:
		return envcheck.OK, "not looked at: blocks that it has leased are no part of a state", nil
	case none:
		return envcheck.Warning, "it saves nothing: it begins from scratch wherever it is replaced or resumed", nil
	case err != nil:
		return envcheck.Failed, "", err
	case s.kept > 0:
		return envcheck.Failed, "", fmt.Errorf("it saves a state while %d blocks are leased", s.kept)
	}
	rest, err := k.play(k.items[half:], &state)
	if err != nil {
		return envcheck.Failed, "", err
	}
	return same(k.first.sent[min(before, len(k.first.sent)):], rest.sent, "after a snapshot")
}

func (k *checker) givesBack() (envcheck.Verdict, string, error) {
	if k.first.kept > 0 {
		return envcheck.Warning, fmt.Sprintf("%d blocks are leased after the last of %d messages", k.first.kept, len(k.items)), nil
	}
	return envcheck.OK, "none is leased after the last message", nil
}

func (k *checker) answers() (envcheck.Verdict, string, error) {
	switch {
	case k.first.asked == 0:
		return envcheck.OK, "it gets none", nil
	case k.first.wrong != "":
		return envcheck.Failed, k.first.wrong, nil
	}
	return envcheck.OK, fmt.Sprintf("%d requests", k.first.asked), nil
}

func (k *checker) writes() (envcheck.Verdict, string, error) {
	if len(k.first.altered) == 0 {
		return envcheck.OK, "columns to read are as they came", nil
	}
	slices.Sort(k.first.altered)
	return envcheck.Failed, "it writes into " + strings.Join(slices.Compact(k.first.altered), ", ") + ", where nobody but it sees that", nil
}
