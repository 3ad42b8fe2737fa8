;; rl_timer is called with the number of the timer, once; then the timer is over.
;; include guest
(global $mine (mut i32) (i32.const 0))
(func (export "rl_timer") (param $timer i32) (result i32)
  (call $same (i32.const 1) (local.get $timer) (global.get $mine))
  (call $same (i32.const 2) (call $cancel (local.get $timer)) (i32.const -3))
  (drop (call $note (i64.const 4)))
  (i32.const 0))
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (global.set $mine (call $timer (i64.const 0) (i64.const 0)))
  (i32.const 0))
