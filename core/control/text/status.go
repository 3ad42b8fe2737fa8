package text

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/place"
)

// blankEnds are blanks at the ends of lines.
var blankEnds = regexp.MustCompile(`(?m) +$`)

// Status describes a job: a head, a row for each component, and anything unusual.
func Status(s *control.StatusReply) string { return Head(s) + Components(s.Components) + State(s) }

// Head is the line that names a job.
func Head(s *control.StatusReply) string {
	var b strings.Builder
	up := time.Duration(s.Wall * float64(time.Second)).Round(time.Second)
	fmt.Fprintf(&b, "%s  %s  pid %d  %v  policy version %d", s.Run, s.State, s.PID, up, s.Policy)
	if s.MeanReturn != nil {
		b.WriteString("  train return " + Returns(*s.MeanReturn))
	}
	if s.Elo != nil {
		fmt.Fprintf(&b, "  Elo %.0f", *s.Elo)
	}
	return b.String() + "\n"
}

// labels lists the labels of a host by their names.
func labels(of map[string]string) string {
	text := ""
	for _, key := range slices.Sorted(maps.Keys(of)) {
		text += fmt.Sprintf(", %s=%s", key, of[key])
	}
	return text
}

// State counts the env steps of a job, and names what is unusual: the cause of a stall comes last.
func State(s *control.StatusReply) string {
	var b strings.Builder
	for i := range s.Learners {
		b.WriteString(learner(&s.Learners[i]))
	}
	fmt.Fprintf(&b, "env steps: %s\n", steps(&s.Steps))
	for _, h := range s.Hosts {
		fmt.Fprintf(&b, "host %s: %s, %d slots, %d cores, %s of memory, rlhost %s%s\n",
			h.Name, h.State, h.Slots, h.Cores, Short(float64(h.Memory))+"B", h.Version, labels(h.Labels))
	}
	if s.Processes > 0 {
		fmt.Fprintf(&b, "environments: their processes have %s of memory\n", Short(float64(s.Processes))+"B")
	}
	if s.Wrapped > 0 {
		fmt.Fprintf(&b, "wrappers: copied %s\n", Short(float64(s.Wrapped))+"B")
	}
	if n := s.Swaps; n != (control.SwapCounts{}) {
		fmt.Fprintf(&b, "changes: %d committed, %d rolled back, %d refused\n", n.Committed, n.RolledBack, n.Refused)
	}
	if s.Transition != "" {
		fmt.Fprintf(&b, "now: %s\n", s.Transition)
	}
	for _, x := range s.Probation {
		fmt.Fprintf(&b, "probation: %s, %s, %s left%s\n", x.Component, Version(&x.Version), seconds(x.Left), why(&x))
	}
	if s.Cause != "" {
		fmt.Fprintf(&b, "cause: %s\n", s.Cause)
	}
	return b.String()
}

// why says why a probation lasts longer than its time.
func why(p *control.Probation) string {
	switch {
	case p.Paused:
		return ", not counted while something is paused"
	case p.Idle:
		return ", and until it has done something"
	}
	return ""
}

// learner describes one of several learners.
func learner(l *control.LearnerStatus) string {
	text := fmt.Sprintf("policy %s: version %d, %s env steps trained", l.Policy, l.Version, thousands(l.EnvSteps))
	if l.MeanReturn != nil {
		text += ", train return " + Returns(*l.MeanReturn)
	}
	if l.Leads {
		text += " (leads)"
	}
	return text + "\n"
}

// steps shows that env steps add up.
func steps(n *control.StepCounts) string {
	text := fmt.Sprintf("%s made = %s trained + %s dropped + %s under way", thousands(n.Made), thousands(n.Trained),
		thousands(n.Dropped), thousands(n.UnderWay))
	var reasons []string
	for _, why := range slices.Sorted(maps.Keys(n.Reasons)) {
		if n.Reasons[why] > 0 {
			reasons = append(reasons, why+" "+thousands(n.Reasons[why]))
		}
	}
	if len(reasons) > 0 {
		text += " (dropped: " + strings.Join(reasons, ", ") + ")"
	}
	return text
}

// Components is a table with a row for each component. Neighbouring instances that differ in numbers alone share one.
func Components(list []control.ComponentStatus) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "COMPONENT\tHOST\tSTATE\tVERSION\tRATE\tQUEUE\tNOTE")
	for i := 0; i < len(list); {
		sum, n := list[i], 1
		for ; i+n < len(list) && alike(&list[i], &list[i+n]); n++ {
			next := &list[i+n]
			sum.Rate += next.Rate
			sum.Queued += next.Queued
			sum.Depth += next.Depth
		}
		if n > 1 {
			base, first := instance(list[i].Name)
			_, last := instance(list[i+n-1].Name)
			sum.Name = fmt.Sprintf("%s[%d-%d]", base, first, last)
		}
		fmt.Fprintln(w, row(&sum))
		i += n
	}
	_ = w.Flush() // a strings.Builder takes everything
	return blankEnds.ReplaceAllString(b.String(), "")
}

// Wires is a table with a row for each wire.
func Wires(list []control.WireStatus) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WIRE\tMODE\tQUEUE\tDELIVERED\tDROPPED\tCOALESCED\tBLOCKED")
	for _, x := range list {
		fmt.Fprintf(w, "%s\t%s\t%d/%d\t%s\t%s\t%s\t%s\n", x.Wire, x.Mode, x.Queued+x.Parked, x.Depth,
			thousands(x.Delivered), thousands(x.Dropped), thousands(x.Coalesced), thousands(x.Blocked))
	}
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}

// alike reports whether two instances of one component, the second after the first, differ in numbers alone.
func alike(a, b *control.ComponentStatus) bool {
	nameA, first := instance(a.Name)
	nameB, second := instance(b.Name)
	sameVersion := a.Version == b.Version || a.Version != nil && b.Version != nil && *a.Version == *b.Version
	return nameA == nameB && first >= 0 && second > first && a.Host == b.Host && a.Runtime == b.Runtime && a.State == b.State &&
		sameVersion && a.Note == "" && b.Note == "" && a.WaitsFor == b.WaitsFor && a.Group == b.Group && a.Placed == b.Placed && a.Envs == b.Envs
}

// instance divides rollout[3] into its parts; the index of a name without one is -1.
func instance(name string) (component string, index int) {
	base, rest, _ := strings.Cut(name, "[")
	index, err := strconv.Atoi(strings.TrimSuffix(rest, "]"))
	if err != nil {
		return name, -1
	}
	return base, index
}

func row(c *control.ComponentStatus) string {
	state, host, version, rate, queue := string(c.State), c.Host, "–", "–", "–"
	if c.State == control.Stalled || c.State == control.Failed || c.State == control.Lost {
		state = strings.ToUpper(state)
	}
	if c.Runtime == "process" && host == "local" {
		host = "process"
	}
	if c.Version != nil {
		version = Version(c.Version)
	}
	if c.Unit != "" {
		unit := strings.NewReplacer("env steps", "st", "messages", "msg").Replace(c.Unit)
		rate = Short(c.Rate) + " " + unit + "/s"
	}
	if c.Depth > 0 {
		queue = fmt.Sprintf("%d/%d", c.Queued, c.Depth)
	}
	return strings.Join([]string{c.Name, host, state, version, rate, queue, notes(c)}, "\t")
}

func notes(c *control.ComponentStatus) string {
	var notes []string
	if c.Group != "" {
		notes = append(notes, "group "+c.Group)
	}
	if at := place.Place(c.Placed).String(); at != "" {
		notes = append(notes, at)
	}
	if at := place.Place(c.Envs).String(); at != "" {
		notes = append(notes, "environments: "+at)
	}
	if c.WaitsFor != "" {
		notes = append(notes, "waits for "+c.WaitsFor)
	}
	if c.Note != "" {
		notes = append(notes, c.Note)
	}
	if c.Previous != nil {
		notes = append(notes, "previous: "+Version(c.Previous))
	}
	return strings.Join(notes, "; ")
}
