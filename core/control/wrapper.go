package control

import (
	"regexp"
	"strconv"
)

var wrapperPattern = regexp.MustCompile(`^(.+)\.wrap\[([0-9]{1,4})\]$`)

// SplitWrapper splits the name of a wrapper, such as rollout.wrap[1], into the component that runs the environments and the place
// in their list of wrappers. Of any other name it returns the name itself, and ok is false.
func SplitWrapper(name string) (component string, place int, ok bool) {
	m := wrapperPattern.FindStringSubmatch(name)
	if m == nil {
		return name, 0, false
	}
	place, err := strconv.Atoi(m[2])
	return m[1], place, err == nil
}
