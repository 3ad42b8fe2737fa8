;; A guest without rl_timer has no timers.
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (call $same (i32.const 1) (call $timer (i64.const 0) (i64.const 0)) (i32.const -1))
  (i32.const 0))
