;; A timer that is cancelled is not called.
;; include guest
(func (export "rl_timer") (param $timer i32) (result i32)
  (unreachable)
  (i32.const 0))
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (local.set $at (call $timer (i64.const 0) (i64.const 1)))
  (call $same (i32.const 1) (call $cancel (local.get $at)) (i32.const 0))
  (call $same (i32.const 2) (call $cancel (local.get $at)) (i32.const -3))
  (call $same (i32.const 3) (call $cancel (i32.const 99)) (i32.const -3))
  (i32.const 0))
