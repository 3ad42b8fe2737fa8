package component

// Policy is a policy as the file's [policy.NAME] describes it, on its way to the components that use it: what it is made
// of is for package gpu/policy, whose Of finds it.
type Policy interface {
	// SameNetwork returns nil if the parameters of this one mean the same in the next one, and else an error that shows
	// both specifications.
	SameNetwork(next Policy) error
}
