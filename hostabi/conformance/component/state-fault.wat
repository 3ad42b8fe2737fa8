;; A guest that traps in rl_snapshot has no state, and goes on from the state before.
;; include guest
(func (export "rl_snapshot") (param $buf i32) (param $cap i32) (result i32) (global.set $messages (i32.const 90)) (unreachable))
(func (export "rl_restore") (param i32 i32) (result i32) (unreachable))
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (drop (call $note (i64.extend_i32_u (global.get $messages))))
  (i32.const 0))
