;; The calls of a life come in their order, each as often as it says; rl_request is not called for a manifest without requests.
;; include imports
;; include memory
;; include marker
;; include alloc
;; include check
;; include manifest
;; include order
(func (export "rl_host") (param i32 i32) (result i32) (call $next (i32.const 7) (i32.const 0) (i32.const 6)))
(func (export "rl_configure") (param i32 i32) (result i32) (call $next (i32.const 1) (i32.const 6) (i32.const 1)))
(func (export "rl_request") (param i32 i32 i32 i32) (result i32) (unreachable))
(func (export "rl_start") (param i32 i32) (result i32) (call $next (i32.const 2) (i32.const 1) (i32.const 2)))
(func (export "rl_slot") (param i32 i32) (result i32)
  (call $same (i32.const 3) (global.get $stage) (i32.const 2))
  (drop (call $note (i64.const 5)))
  (i32.const 0))
(func (export "rl_pause") (result i32) (call $next (i32.const 4) (i32.const 2) (i32.const 3)))
(func (export "rl_resume") (result i32) (call $next (i32.const 5) (i32.const 3) (i32.const 2)))
(func (export "rl_stop") (result i32) (call $next (i32.const 6) (i32.const 2) (i32.const 4)))
