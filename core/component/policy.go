package component

// Policy is a policy as the file's [policy.NAME] describes it, for the components that use it; gpu/policy's Of returns
// its contents.
type Policy interface {
	// SameNetwork returns nil if the parameters of this one mean the same in the next one, otherwise an error that
	// shows both specifications.
	SameNetwork(next Policy) error
}
