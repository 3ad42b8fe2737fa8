;; A message of the guest is from the component; one that is passed on, from who sent it; a number that no component has is refused.
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (call $same (i32.const 1) (call $emit (i32.const 0) (local.get $message)) (i32.const 0))
  (i32.store offset=44 (local.get $message) (i32.const 0))
  (call $same (i32.const 2) (call $emit (i32.const 0) (local.get $message)) (i32.const 0))
  (i32.store offset=44 (local.get $message) (i32.const 0x20000))
  (call $same (i32.const 3) (call $emit (i32.const 0) (local.get $message)) (i32.const -1))
  (i32.const 0))
