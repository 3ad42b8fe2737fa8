package job

import "github.com/rlhost/rlhost/core/component"

// brings reports whether a run that goes from one rule to another ends sooner for the reason given.
func brings(was, is *component.StopRule, reason component.StopReason) bool {
	switch reason {
	case component.StopReturn:
		return is.HasReturn && (!was.HasReturn || is.Return < was.Return || is.Window != was.Window)
	case component.StopEnvSteps:
		return is.EnvSteps > 0 && (was.EnvSteps == 0 || is.EnvSteps < was.EnvSteps)
	case component.StopWall:
		return is.Wall > 0 && (was.Wall == 0 || is.Wall < was.Wall)
	}
	return false
}
