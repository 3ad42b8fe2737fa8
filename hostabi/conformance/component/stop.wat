;; A component may ask the run to end, for a reason that there is: 0 is one of its own.
;; include granted
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (call $same (i32.const 1) (call $stop (i32.const 0)) (i32.const 0))
  (call $same (i32.const 2) (call $stop (i32.const 4)) (i32.const -1))
  (call $same (i32.const 3) (call $stop (i32.const 2)) (i32.const 0))
  (i32.const 0))
