;; A leased block may be named by messages of later calls.
;; include guest
(global $kept (mut i32) (i32.const 0))(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (if (global.get $kept)
    (then
      (i32.store (local.get $message) (global.get $kept))
      (call $same (i32.const 1) (call $emit (i32.const 0) (local.get $message)) (i32.const 0))
      (call $same (i32.const 2) (call $release (global.get $kept)) (i32.const 0))
      (call $same (i32.const 3) (call $emit (i32.const 0) (local.get $message)) (i32.const -1)))
    (else
      (call $same (i32.const 4) (call $lease (local.get $token)) (i32.const 0))
      (global.set $kept (local.get $token))))
  (i32.const 0))
