;; Messages of a payload that has blocks name one that came with that payload.
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (call $same (i32.const 1) (call $emit (i32.const 0) (local.get $message)) (i32.const -1)) ;; it came with the payload note
  (i32.store (local.get $message) (i32.const 0))
  (call $same (i32.const 2) (call $emit (i32.const 0) (local.get $message)) (i32.const -1)) ;; none
  (i32.store (local.get $message) (local.get $token))
  (call $same (i32.const 3) (call $emit (i32.const 1) (local.get $message)) (i32.const 0)) ;; a payload of one's own may name any
  (i32.const 0))
