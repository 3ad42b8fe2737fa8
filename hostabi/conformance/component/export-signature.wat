;; An export of another signature.
;; include guest
(func (export "rl_slot") (param i32) (result i32) (unreachable))
