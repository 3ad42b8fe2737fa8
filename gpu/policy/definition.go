package policy

// Definition is one policy of a pipeline: its network and what computes it. Components find it under the policy's
// name with component.Host.Policy.
type Definition struct {
	Name    string
	Network Network
	Backend Backend
}
