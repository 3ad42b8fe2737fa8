;; An optional column that the block has not is bound to address 0.
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (local.set $at (i32.load offset=4 (local.get $message)))
  (call $same (i32.const 1) (i32.load offset=128 (local.get $at)) (i32.const 0))
  (call $same (i32.const 2) (i32.eqz (i32.load offset=64 (local.get $at))) (i32.const 0))
  (drop (call $emit (i32.const 0) (local.get $message)))
  (i32.const 0))
