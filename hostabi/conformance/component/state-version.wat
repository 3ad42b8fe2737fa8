;; A state that the guest does not read: RL_STATUS_VERSION, and the instance before goes on.
;; include guest
;; include state
(func (export "rl_restore") (param i32 i32) (result i32) (i32.const -9))
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (drop (call $note (i64.extend_i32_u (global.get $messages))))
  (i32.const 0))
