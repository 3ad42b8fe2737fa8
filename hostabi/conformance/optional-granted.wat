;; A function of rl_optional that exists and is granted is that function: the clock has gone on behind the first step.
(import "rl_optional" "clock_ns" (func $clock_ns (result i64)))
;; include frame
;; include place
;; include observe
;; include advance
(func (export "rl_step") (param $batch i32) (param $t i32) (result i32)
  (local $env i32)
  (local $status i32)
  (if (i64.eqz (call $clock_ns)) (then unreachable))
  (local.set $status (call $ready (local.get $t) (i32.const 0) (i32.load (i32.const 0x2f04))))
  (if (local.get $status) (then (return (local.get $status))))
  (loop $next
    (local.set $status (call $advance (local.get $t) (local.get $env)))
    (if (local.get $status) (then (return (local.get $status))))
    (local.set $env (i32.add (local.get $env) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $env) (i32.load (i32.const 0x2f04)))))
  (i32.const 0))
