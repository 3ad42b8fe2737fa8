;; A recursion without an end is a fault.
;; include guest
(func $down (param i64 i64 i64 i64) (result i64) (i64.add (i64.const 1) (call $down (local.get 0) (local.get 1) (local.get 2) (local.get 3))))(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (drop (call $down (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4)))
  (i32.const 0))
