;; A signal that there is not, and a message outside of memory.
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (call $same (i32.const 1) (call $emit (i32.const 2) (local.get $message)) (i32.const -1))
  (call $same (i32.const 2) (call $emit (i32.const -1) (local.get $message)) (i32.const -1))
  (call $same (i32.const 3) (call $emit (i32.const 0) (i32.const -32)) (i32.const -1))
  (call $same (i32.const 4) (call $emit (i32.const 0) (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 63))) (i32.const -1))
  (i32.const 0))
