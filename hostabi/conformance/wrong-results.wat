;; A function of the ABI with other results.
;; include frame
;; include place
;; include observe
;; include advance
(func (export "rl_step") (param i32 i32) (result i64) (i64.const 0))
