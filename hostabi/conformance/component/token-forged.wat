;; A number that names nothing is refused.
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (local.set $at (i32.const 1))
  (loop $each
    (if (i32.ne (local.get $at) (local.get $token)) (then
      (call $same (i32.const 1) (call $lease (local.get $at)) (i32.const -1))))
    (br_if $each (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (i32.const 4000))))
  (call $same (i32.const 2) (call $lease (i32.const -1)) (i32.const -1))
  (call $same (i32.const 3) (call $lease (i32.add (local.get $token) (i32.const 0x10000))) (i32.const -1))
  (drop (call $emit (i32.const 0) (local.get $message)))
  (i32.const 0))
