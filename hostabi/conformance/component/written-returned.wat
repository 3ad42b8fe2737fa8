;; It is in the block when rl_slot returns, if the guest does not emit it.
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (local.set $at (i32.load offset=4 (local.get $message)))
  (call $same (i32.const 1) (i32.load8_u offset=41 (local.get $at)) (i32.const 1))
  (f32.store (i32.load (local.get $at)) (f32.const 99))
  (i32.const 0))
