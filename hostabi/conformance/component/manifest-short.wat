;; A manifest shorter than its head.
;; include imports
;; include memory
;; include marker
;; include alloc
;; include check
;; include configure
;; include records
;; include start
;; include slot
(func (export "rl_manifest") (param $buf i32) (param $cap i32) (result i32)
  (if (i32.ge_u (local.get $cap) (i32.const 64)) (then (memory.copy (local.get $buf) (i32.const 0x400) (i32.const 64))))
  (i32.const 64))
