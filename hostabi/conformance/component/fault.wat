;; A guest that traps costs the message that it handled; it goes on from a state between two calls.
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (drop (call $note (i64.extend_i32_u (global.get $messages))))
  (if (i64.eq (i64.load offset=24 (local.get $message)) (i64.const 1)) (then (global.set $check (i32.const 33)) (unreachable)))
  (i32.const 0))
