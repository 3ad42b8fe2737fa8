;; Random bytes of WASI come from a stream of the environment that rl_current_env names: each has its own, and they are the same again after the same seeds. Its info has some.
(import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
;; include frame
;; include place
;; include observe
;; include advance
(global $env (mut i32) (i32.const -1))
(func (export "rl_current_env") (result i32) (global.get $env))
(func $random (result i64)
  (if (call $random_get (i32.const 0x1000) (i32.const 8)) (then (unreachable)))
  (i64.load (i32.const 0x1000)))
(func (export "rl_step") (param $batch i32) (param $t i32) (result i32)
  (local $env i32) (local $status i32) (local $first i64)
  (local.set $status (call $ready (local.get $t) (i32.const 0) (i32.load (i32.const 0x2f04))))
  (if (local.get $status) (then (return (local.get $status))))
  (loop $next
    (global.set $env (local.get $env))
    (local.set $first (call $random))
    (if (local.get $env) ;; the second environment draws twice
      (then
        (if (i64.eq (local.get $first) (call $random)) (then (unreachable)))
        (if (i64.eq (local.get $first) (global.get $before)) (then (unreachable)))))
    (global.set $before (local.get $first))
    (local.set $status (call $advance (local.get $t) (local.get $env)))
    (if (local.get $status) (then (return (local.get $status))))
    (f32.store (call $place (i32.const 6) (local.get $t) (local.get $env)) (f32.convert_i64_u (i64.and (local.get $first) (i64.const 0xffffff))))
    (local.set $env (i32.add (local.get $env) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $env) (i32.load (i32.const 0x2f04)))))
  (global.set $env (i32.const -1))
  (i32.const 0))
(global $before (mut i64) (i64.const 0))
(data (i32.const 0x410) "\08") ;; needs info
(data (i32.const 0x420) "\07\00\00\00")
(data (i32.const 0x780) "\09\00") ;; role
(data (i32.const 0x786) "\08") ;; dtype
(data (i32.const 0x788) "\02\00\00\00") ;; flags
