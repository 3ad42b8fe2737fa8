;; A table without keys has no bytes.
;; include imports
;; include memory
;; include marker
;; include alloc
;; include check
;; include manifest
;; include start
;; include slot
(func (export "rl_configure") (param $text i32) (param $len i32) (result i32)
  (call $same (i32.const 1) (local.get $len) (i32.const 0)) (i32.const 0))
