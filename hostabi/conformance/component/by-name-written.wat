;; A column for writing that a wire grants; once the block is emitted it can no longer be written.
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (call $same (i32.const 1) (call $column (local.get $token) (i32.const 0x3400) (i32.const 6) (i32.const 1) (i32.const 0x3200)) (i32.const 0))
  (call $same (i32.const 2) (i32.load8_u offset=41 (i32.const 0x3200)) (i32.const 1))
  (f32.store (i32.load (i32.const 0x3200)) (f32.const 98))
  (drop (call $emit (i32.const 0) (local.get $message)))
  (call $same (i32.const 3) (call $column (local.get $token) (i32.const 0x3400) (i32.const 6) (i32.const 1) (i32.const 0x3200)) (i32.const -3))
  (i32.const 0))
