;; A message without a block has token 0, and its slot no bindings.
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (call $same (i32.const 1) (local.get $slot) (i32.const 3))
  (call $same (i32.const 2) (local.get $token) (i32.const 0))
  (call $same (i32.const 3) (i32.load offset=4 (local.get $message)) (i32.const 0))
  (call $same (i32.const 4) (call $lease (i32.const 0)) (i32.const -1))
  (drop (call $note (i64.load offset=24 (local.get $message))))
  (i32.const 0))
