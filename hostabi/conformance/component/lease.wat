;; A leased block stays where it is, with what was bound, beyond its slot.
;; include guest
(global $kept (mut i32) (i32.const 0))(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (if (global.get $kept)
    (then (call $same (i32.const 1) (i32.trunc_f32_s (f32.load (global.get $kept))) (i32.const 0)))
    (else
      (call $same (i32.const 2) (call $lease (local.get $token)) (i32.const 0))
      (global.set $kept (i32.load (i32.load offset=4 (local.get $message))))))
  (drop (call $emit (i32.const 0) (local.get $message)))
  (i32.const 0))
