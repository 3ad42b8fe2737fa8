;; Functions of rl_optional that are not granted, or do not exist: they do nothing, and return RL_STATUS_UNSUPPORTED where they return an i32.
(import "rl_optional" "shell" (func $shell (param i64) (result i32)))
(import "rl_optional" "stop" (func $stop (param i32) (result i32)))
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (if (i32.ne (call $shell (i64.const 1)) (i32.const -4)) (then unreachable))
  (if (i32.ne (call $stop (i32.const 1)) (i32.const -4)) (then unreachable))
  (if (i32.eqz (local.get $slot)) (then (drop (call $emit (i32.const 0) (local.get $message)))))
  (i32.const 0))
