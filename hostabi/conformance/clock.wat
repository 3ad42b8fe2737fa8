;; The clock of WASI and that of the ABI are one, which advances with each step and stands still within none.
(import "rl" "clock_ns" (func $clock_ns (result i64)))
(import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
;; include frame
;; include place
;; include observe
;; include advance
(global $last (mut i64) (i64.const -1))
(func $time (result i64)
  (if (call $clock_time_get (i32.const 1) (i64.const 0) (i32.const 0x1000)) (then (unreachable)))
  (i64.load (i32.const 0x1000)))
(func (export "rl_step") (param $batch i32) (param $t i32) (result i32)
  (local $env i32) (local $status i32) (local $now i64)
  (local.set $now (call $clock_ns))
  (if (i64.le_s (local.get $now) (global.get $last)) (then (unreachable)))
  (if (i64.lt_s (call $time) (local.get $now)) (then (unreachable)))
  (global.set $last (call $clock_ns))
  (if (i64.gt_s (i64.sub (global.get $last) (local.get $now)) (i64.const 1000000)) (then (unreachable)))
  (local.set $status (call $ready (local.get $t) (i32.const 0) (i32.load (i32.const 0x2f04))))
  (if (local.get $status) (then (return (local.get $status))))
  (loop $next
    (local.set $status (call $advance (local.get $t) (local.get $env)))
    (if (local.get $status) (then (return (local.get $status))))
    (local.set $env (i32.add (local.get $env) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $env) (i32.load (i32.const 0x2f04)))))
  (i32.const 0))
