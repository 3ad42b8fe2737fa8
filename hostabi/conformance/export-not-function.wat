;; An export of the ABI that is not a function.
;; include frame
;; include place
;; include observe
;; include advance
(global (export "rl_step") i32 (i32.const 0))
