(func (export "rl_component_v1"))
