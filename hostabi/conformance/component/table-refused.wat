;; RL_STATUS_CONFIG refuses the table; rl_last_error has a line for each key.
;; include imports
;; include memory
;; include marker
;; include alloc
;; include manifest
;; include start
;; include slot
(data (i32.const 0x3420) "key: no 0")
(func (export "rl_last_error") (param $buf i32) (param $cap i32) (result i32)
  (memory.copy (local.get $buf) (i32.const 0x3420) (i32.const 9)) (i32.const 9))
(func (export "rl_configure") (param i32 i32) (result i32) (i32.const -5))
(func $note (param i64) (result i32) (unreachable))
