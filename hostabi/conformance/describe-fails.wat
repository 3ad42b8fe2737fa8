;; A description that fails is refused with the guest's own words.
;; include memory
;; include alloc
;; include create
;; include bind
;; include reset
;; include step

(data (i32.const 0x1000) "no such level")
(func (export "rl_describe") (param i32 i32 i32 i32) (result i32) (i32.const -5))
(func (export "rl_last_error") (param $buf i32) (param $cap i32) (result i32)
  (if (i32.ge_u (local.get $cap) (i32.const 13)) (then (memory.copy (local.get $buf) (i32.const 0x1000) (i32.const 13))))
  (i32.const 13))
