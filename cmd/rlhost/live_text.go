package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/control"
)

// thousands writes a number with commas: 12,288.
func thousands(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	var b strings.Builder
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(digits[i])
	}
	return b.String()
}

// short writes a number with at most four characters and a unit: 412k.
func short(x float64) string {
	switch {
	case x < 10 && x != float64(int(x)):
		return fmt.Sprintf("%.1f", x)
	case x < 1e3:
		return fmt.Sprintf("%.0f", x)
	case x < 1e4:
		return fmt.Sprintf("%.1fk", x/1e3)
	case x < 1e6:
		return fmt.Sprintf("%.0fk", x/1e3)
	case x < 1e7:
		return fmt.Sprintf("%.1fM", x/1e6)
	}
	return fmt.Sprintf("%.0fM", x/1e6)
}

// seconds writes a duration: 0.42 s, 3.4 s, 61 s.
func seconds(s float64) string {
	if s < 1 {
		return fmt.Sprintf("%.2f s", s)
	}
	if s < 10 {
		return fmt.Sprintf("%.1f s", s)
	}
	return fmt.Sprintf("%.0f s", s)
}

// wall writes how long a job has run: 2h03m04s.
func wall(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}

// plural writes a number and what it counts: 1 trap, 2 traps.
func plural[T int | uint64](n T, what string) string {
	if n != 1 {
		what += "s"
	}
	return thousands(uint64(n)) + " " + what
}

// hash8 is enough of a hash to tell versions apart.
func hash8(hash string) string {
	if len(hash) <= 8 {
		return hash
	}
	return hash[:8]
}

// versionText names a version: lander2.wasm (41c2e6d0).
func versionText(v *control.Version) string {
	name := filepath.Base(v.File)
	if v.Hash == "" {
		return name
	}
	return fmt.Sprintf("%s (%s)", name, hash8(v.Hash))
}

// boundaryText tells when a change was made.
func boundaryText(at string) string {
	switch at {
	case "episode":
		return "at episode ends"
	case "trajectory":
		return "at trajectory ends"
	case "step":
		return "between two steps"
	case "now":
		return "at once"
	}
	return at
}
