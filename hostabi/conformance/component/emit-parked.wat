;; A message for which there is no room waits, and so do those for the component.
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (if (i32.eq (global.get $messages) (i32.const 1)) (then
    (call $same (i32.const 1) (call $note (i64.const 1)) (i32.const 0))
    (call $same (i32.const 2) (call $note (i64.const 2)) (i32.const 1))
    (call $same (i32.const 3) (call $note (i64.const 3)) (i32.const 1)))
    (else (drop (call $note (i64.const 4)))))
  (i32.const 0))
