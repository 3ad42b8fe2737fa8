package control

import (
	"regexp"
	"strconv"
)

var wrapperPattern = regexp.MustCompile(`^(.+)\.wrap\[([0-9]{1,4})\]$`)

// SplitWrapper splits the name of a wrapper, such as rollout.wrap[1], into the component that runs the environments and the place
// in their list of wrappers. Of any other name it returns the name itself, and ok is false. A place beyond all lists is -1.
func SplitWrapper(name string) (component string, place int, ok bool) {
	m := wrapperPattern.FindStringSubmatch(name)
	if m == nil {
		return name, 0, false
	}
	place, err := strconv.Atoi(m[2])
	if err != nil {
		place = -1
	}
	return m[1], place, true
}
