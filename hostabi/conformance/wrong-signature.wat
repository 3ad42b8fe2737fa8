;; A function of the ABI with other parameters.
;; include guest
(func (export "rl_render") (param i32) (result i32) (i32.const 0))
