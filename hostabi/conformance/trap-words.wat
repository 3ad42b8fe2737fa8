;; A guest that traps in a step may be asked for the text of its error.
;; include memory
;; include describe
;; include alloc
;; include create
;; include bind
;; include reset
;; include place
;; include observe
(data (i32.const 0x1000) "the door is shut")
(func (export "rl_step") (param $batch i32) (param $t i32) (result i32) (unreachable))
(func (export "rl_last_error") (param $buf i32) (param $cap i32) (result i32)
  (if (i32.ge_u (local.get $cap) (i32.const 16)) (then (memory.copy (local.get $buf) (i32.const 0x1000) (i32.const 16))))
  (i32.const 16))
