;; The clock of WASI goes on by a millisecond with each message, and by less when it is read.
(import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
;; include guest
(global $last (mut i64) (i64.const -1))
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $since i64)
  (call $same (i32.const 1) (call $clock_time_get (i32.const 1) (i64.const 0) (i32.const 0x3500)) (i32.const 0))
  (local.set $since (i64.sub (i64.load (i32.const 0x3500)) (global.get $last)))
  (if (i64.ge_s (global.get $last) (i64.const 0))
    (then
      (call $same (i32.const 2) (i64.ge_s (local.get $since) (i64.const 1000000)) (i32.const 1))
      (call $same (i32.const 3) (i64.lt_s (local.get $since) (i64.const 2000000)) (i32.const 1))))
  (global.set $last (i64.load (i32.const 0x3500)))
  (i32.const 0))
