package pipeline

// EnvName returns the environment that the component's table names, or "".
func (x *Component) EnvName() string { return x.env }
