package component

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/rlhost/rlhost/hostabi"
)

// ErrChanging is wrapped by PrepareEnvs and Commit while another change of the component's environments is prepared or
// under way.
var ErrChanging = errors.New("another change of environments is under way")

// SpacesError says that environments cannot replace the running ones, because they observe, act or end
// episodes differently.
type SpacesError struct {
	Component     string
	Reason        string // the first thing that differs
	Running, Next hostabi.EnvSpec
	Help          string // the command that it is about; empty where there is none
}

// Error returns the reason in one line; Table shows both specifications.
func (e *SpacesError) Error() string {
	return fmt.Sprintf("%s: %s cannot take the place of %s: %s", e.Component, e.Next.Name, e.Running.Name, e.Reason)
}

// Table returns both specifications side by side, one line for each part; differing lines begin with a star.
func (e *SpacesError) Table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %-12s %-32s %s\n", "", e.Running.Name+" (running)", e.Next.Name+" (new)")
	for _, part := range []struct {
		name string
		rare bool // listed only where it differs
		of   func(*hostabi.EnvSpec) string
	}{
		{"observation", false, func(s *hostabi.EnvSpec) string { return describe(s, hostabi.RoleObservation) }},
		{"action", false, func(s *hostabi.EnvSpec) string { return describe(s, hostabi.RoleAction) }},
		{"action mask", false, func(s *hostabi.EnvSpec) string { return describe(s, hostabi.RoleActionMask) }},
		{"discount", true, func(s *hostabi.EnvSpec) string { return describe(s, hostabi.RoleDiscount) }},
		{"reset_param", true, func(s *hostabi.EnvSpec) string { return describe(s, hostabi.RoleResetParam) }},
		{"info", true, func(s *hostabi.EnvSpec) string { return describe(s, hostabi.RoleInfo) }},
		{"reset_info", true, func(s *hostabi.EnvSpec) string { return describe(s, hostabi.RoleResetInfo) }},
		{"autoreset", false, autoresets},
	} {
		running, next, mark := part.of(&e.Running), part.of(&e.Next), " "
		if part.rare && running == next {
			continue
		}
		if running != next {
			mark = "*"
		}
		fmt.Fprintf(&b, "%s %-12s %-32s %s\n", mark, part.name, running, next)
	}
	return b.String()
}

// describe returns the spaces of a role.
func describe(s *hostabi.EnvSpec, role hostabi.Role) string {
	return cmp.Or(s.Spaces(role), "none")
}

// autoresets returns the autoreset modes of an environment.
func autoresets(s *hostabi.EnvSpec) string {
	var modes []string
	for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled} {
		if s.Autoreset&mode != 0 {
			modes = append(modes, mode.String())
		}
	}
	return strings.Join(modes, ", ")
}
