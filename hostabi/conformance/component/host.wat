;; rl_host tells the host, before rl_configure.
;; include imports
;; include memory
;; include marker
;; include alloc
;; include check
;; include manifest
;; include start
;; include slot
(global $told (mut i32) (i32.const 0))
(func (export "rl_host") (param $host i32) (param $len i32) (result i32)
  (call $same (i32.const 1) (i32.ge_u (local.get $len) (i32.const 48)) (i32.const 1))
  (call $same (i32.const 2) (i32.load (local.get $host)) (local.get $len))
  (call $same (i32.const 3) (i32.load16_u offset=4 (local.get $host)) (i32.const 1))
  (call $same64 (i32.const 4) (i64.load offset=8 (local.get $host)) (i64.const 0)) ;; no feature there is
  (call $same (i32.const 5) (i32.eqz (i32.load offset=24 (local.get $host))) (i32.const 0))
  (call $same (i32.const 6) (i32.and (local.get $host) (i32.const 7)) (i32.const 0))
  (global.set $told (i32.const 1))
  (i32.const 0))
(func (export "rl_configure") (param i32 i32) (result i32)
  (call $same (i32.const 7) (global.get $told) (i32.const 1))
  (i32.const 0))
