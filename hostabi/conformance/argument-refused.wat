;; A guest that lists no arguments refuses a key itself: the host says so with the guest's own words.
;; include memory
;; include head
;; include tensors
;; include alloc
;; include create
;; include bind
;; include reset
;; include step
(func (export "rl_describe") (param $config i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (if (local.get $len) (then (return (i32.const -5)))) ;; RL_STATUS_CONFIG
  (if (i32.ge_u (local.get $cap) (i32.const 0x900))
    (then (memory.copy (local.get $buf) (i32.const 0x400) (i32.const 0x900))))
  (i32.const 0x900))
(data (i32.const 0x1000) "it has no level")
(func (export "rl_last_error") (param $buf i32) (param $cap i32) (result i32)
  (if (i32.ge_u (local.get $cap) (i32.const 15)) (then (memory.copy (local.get $buf) (i32.const 0x1000) (i32.const 15))))
  (i32.const 15))
