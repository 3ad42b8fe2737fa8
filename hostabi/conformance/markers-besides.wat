;; The markers of the candidate and of a later version stand besides that of version 1: the host takes the highest that it speaks.
;; include guest
(func (export "rl_abi_v1rc"))
(func (export "rl_env_v2"))
