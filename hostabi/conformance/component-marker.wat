;; The marker of a component in the place of that of an environment.
(memory (export "memory") 1)
(func (export "rl_component_v1"))
