;; A trap in rl_host.
;; include guest
(func (export "rl_host") (param i32 i32) (result i32) (unreachable))
