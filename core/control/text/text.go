// Package text writes the replies of a running job for people: a few lines each, which end with a newline.
//
//	var reply control.SwapReply
//	err := client.Do(ctx, control.VerbSwap, request, &reply, nil)
//	fmt.Print(text.Swap(&reply))
//
// Names in replies come from files and guests: callers that print to a terminal must remove control characters.
package text

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/control"
)

// Group describes the components' answers to a request: one line for all that succeeded, with done as the verb, and one for each that did not.
func Group(done string, r *control.GroupReply) string {
	var ok []string
	var b strings.Builder
	for _, a := range r.Answers {
		switch {
		case a.TimedOut:
			fmt.Fprintf(&b, "%s: no answer in time\n", a.Name)
		case a.Error != nil:
			fmt.Fprintf(&b, "%s: error[%s]: %s\n", a.Name, a.Error.Code, a.Error.Reason)
		default:
			ok = append(ok, a.Name)
		}
	}
	if len(ok) == 0 {
		return b.String()
	}
	return fmt.Sprintf("%s %s\n%s", done, strings.Join(ok, ", "), b.String())
}

// Checkpoint names a checkpoint, in less than a line.
func Checkpoint(c *control.CheckpointReply) string {
	text := fmt.Sprintf("policy version %d at %s env steps", c.PolicyVersion, thousands(c.EnvSteps))
	switch {
	case c.Exact:
		text += ", exactly: all state was saved"
	case c.Why != "":
		text += ", not exactly: " + c.Why
	}
	return text
}

// Tap describes a message in one line, and each of its columns in another.
func Tap(r *control.TapRecord) string {
	var b strings.Builder
	at := time.UnixMicro(int64(r.Time * 1e6)).Format("15:04:05.000")
	fmt.Fprintf(&b, "%s %s  #%d", at, r.Signal, r.Sequence)
	if !strings.HasPrefix(r.Signal, r.From+".") { // it has several instances
		fmt.Fprintf(&b, "  from %s", r.From)
	}
	if r.Handle != "" {
		fmt.Fprintf(&b, "  block %s (%s bytes)", r.Handle, thousands(uint64(max(r.Bytes, 0))))
	}
	if r.PolicyVersion > 0 {
		fmt.Fprintf(&b, "  policy version %d", r.PolicyVersion)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		fmt.Fprintf(&b, "  %s %v", name, r.Values[name])
	}
	b.WriteByte('\n')
	for _, name := range slices.Sorted(maps.Keys(r.Columns)) {
		fmt.Fprintf(&b, "  %s:", name)
		for _, x := range r.Columns[name] {
			fmt.Fprintf(&b, " %.6g", x)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Version names a version: lander2.wasm (41c2e6d0).
func Version(v *control.Version) string {
	name := filepath.Base(v.File)
	if v.Hash == "" {
		return name
	}
	return fmt.Sprintf("%s (%.8s)", name, v.Hash)
}

// Returns writes a mean return, and its deviation if there is one, with three digits at least.
func Returns(numbers ...float64) string {
	texts := make([]string, len(numbers))
	for i, x := range numbers {
		texts[i] = strconv.FormatFloat(x, 'f', Decimals(numbers...), 64)
	}
	return strings.Join(texts, " ± ")
}

// Decimals returns how many decimals show numbers of one kind, such as a mean return and its deviation, so that the largest
// has three digits: 1 for 475.2, 2 for 1.53, at most 6. Numbers that are not finite do not count.
func Decimals(values ...float64) int {
	largest := 0.0
	for _, v := range values {
		if v = math.Abs(v); v <= math.MaxFloat64 {
			largest = max(largest, v)
		}
	}
	if largest == 0 {
		return 1
	}
	return min(max(1, 2-int(math.Floor(math.Log10(largest)))), 6)
}

// Of returns " of rival" for rival, and nothing for an empty name.
func Of(name string) string {
	if name == "" {
		return ""
	}
	return " of " + name
}

// Count writes a number and its noun: 1 trap, 2 traps.
func Count[T int | uint64](n T, what string) string {
	if n != 1 {
		what += "s"
	}
	return thousands(uint64(n)) + " " + what
}

// thousands writes a number with commas: 12,288.
func thousands(n uint64) string {
	if n < 1000 {
		return strconv.FormatUint(n, 10)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// Short writes a number with at most four characters and a unit: 412k.
func Short(x float64) string {
	unit, decimals := "", 0
	for _, larger := range []string{"k", "M", "G", "T"} {
		if x >= 1e3 {
			x, unit = x/1e3, larger
		}
	}
	if x < 10 && (unit != "" || x != math.Trunc(x)) {
		decimals = 1
	}
	return strconv.FormatFloat(x, 'f', decimals, 64) + unit
}

// seconds writes a duration: 0.42 s, 3.4 s, 61 s.
func seconds(s float64) string {
	decimals := 0
	switch {
	case s < 1:
		decimals = 2
	case s < 10:
		decimals = 1
	}
	return strconv.FormatFloat(s, 'f', decimals, 64) + " s"
}
