;; The clock does not go on with a request.
(import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
;; include asking
(global $last (mut i64) (i64.const -1))
(func (export "rl_request") (param $request i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (call $same (i32.const 1) (call $clock_time_get (i32.const 1) (i64.const 0) (i32.const 0x3500)) (i32.const 0))
  (if (i64.ge_s (global.get $last) (i64.const 0))
    (then (call $same (i32.const 2) (i64.lt_s (i64.sub (i64.load (i32.const 0x3500)) (global.get $last)) (i64.const 1000000)) (i32.const 1))))
  (global.set $last (i64.load (i32.const 0x3500)))
  (call $echo (local.get $request) (local.get $buf)))
