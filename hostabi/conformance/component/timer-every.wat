;; A periodic timer is called until it is cancelled.
;; include guest
(func (export "rl_timer") (param $timer i32) (result i32)
  (drop (call $note (i64.const 4)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (if (i32.eq (global.get $messages) (i32.const 4)) (then (call $same (i32.const 1) (call $cancel (local.get $timer)) (i32.const 0))))
  (i32.const 0))
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (drop (call $timer (i64.const 0) (i64.const 1)))
  (i32.const 0))
