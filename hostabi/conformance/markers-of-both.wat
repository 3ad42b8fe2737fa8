;; The markers of an environment and of a component in one module.
;; include guest
(func (export "rl_component_v1"))
