;; A call may emit 4,096 messages; the next one is refused, and another call emits again.
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (loop $each
    (call $same (i32.const 1) (i32.lt_s (call $note (i64.const 1)) (i32.const 0)) (i32.const 0))
    (br_if $each (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (i32.const 4096))))
  (call $same (i32.const 2) (call $note (i64.const 1)) (i32.const -3))
  (i32.const 0))
