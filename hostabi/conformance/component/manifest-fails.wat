;; A manifest that fails with a status and the guest's words.
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
  (global.set $check (i32.const 42))
  (i32.const -128))
