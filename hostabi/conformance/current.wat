;; rl_current_env and rl_current_agent are asked for whom a trap happened.
;; include memory
;; include describe
;; include alloc
;; include create
;; include bind
;; include reset

;; include place
;; include observe
(func (export "rl_step") (param $batch i32) (param $t i32) (result i32) (unreachable))
(func (export "rl_current_env") (result i32) (i32.const 1))
(func (export "rl_current_agent") (result i32) (i32.const 0))
