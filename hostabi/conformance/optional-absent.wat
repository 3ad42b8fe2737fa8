;; Functions of rl_optional that are not granted, or do not exist: they do nothing, and return RL_STATUS_UNSUPPORTED where they return an i32, else 0; log_enabled returns 0.
(import "rl_optional" "log" (func $log (param i32 i32 i32)))
(import "rl_optional" "log_enabled" (func $log_enabled (param i32) (result i32)))
(import "rl_optional" "clock_ns" (func $clock_ns (result i64)))
(import "rl_optional" "launch" (func $launch (param f32 i64 f64) (result i32)))
(import "rl_optional" "height" (func $height (result f64)))
;; include guest
(func (export "rl_host") (param $host i32) (param $len i32) (result i32)
  (call $log (i32.const 2) (i32.const 0xc01) (i32.const 11))
  (if (call $log_enabled (i32.const 2)) (then unreachable))
  (if (i64.ne (call $clock_ns) (i64.const 0)) (then unreachable))
  (if (i32.ne (call $launch (f32.const 1) (i64.const 2) (f64.const 3)) (i32.const -4)) (then unreachable))
  (if (f64.ne (call $height) (f64.const 0)) (then unreachable))
  (i32.const 0))
