;; _initialize runs once, before anything else.
;; include guest
(global $begun (mut i32) (i32.const 0))
(func (export "_initialize") (call $same (i32.const 1) (global.get $begun) (i32.const 0)) (global.set $begun (i32.const 1)))
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (call $same (i32.const 2) (global.get $begun) (i32.const 1))
  (drop (call $emit (i32.const 0) (local.get $message)))
  (i32.const 0))
