;; A slot that does not look at blocks has no columns.
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (call $same (i32.const 1) (i32.eqz (local.get $token)) (i32.const 0))
  (call $same (i32.const 2) (call $column (local.get $token) (i32.const 0x3400) (i32.const 6) (i32.const 0) (i32.const 0x3200)) (i32.const -3))
  (i32.const 0))
