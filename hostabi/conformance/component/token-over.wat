;; A token names its block until rl_slot returns.
;; include guest
(global $old (mut i32) (i32.const 0))(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (if (global.get $old) (then
    (call $same (i32.const 1) (i32.eq (global.get $old) (local.get $token)) (i32.const 0))
    (call $same (i32.const 2) (call $lease (global.get $old)) (i32.const -1))
    (call $same (i32.const 3) (call $release (global.get $old)) (i32.const -1))
    (call $same (i32.const 4) (call $column (global.get $old) (i32.const 0x3400) (i32.const 6) (i32.const 0) (i32.const 0x3200)) (i32.const -1))
    (i32.store (local.get $message) (global.get $old))
    (call $same (i32.const 5) (call $emit (i32.const 0) (local.get $message)) (i32.const -1))
    (i32.store (local.get $message) (local.get $token))))
  (global.set $old (local.get $token))
  (drop (call $emit (i32.const 0) (local.get $message)))
  (i32.const 0))
